import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { DocumentBuilder, SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import { z } from 'zod';
import { PROBLEMS, type ProblemCode } from './domain/domain-error.js';
import { REFUSALS_EXTENSION } from './http/documented.js';
import { PROBLEM_CONTENT_TYPE } from './http/problem.js';
import { Problem } from './payments/schemas/problem.schema.js';

const DOCUMENT_URL = '/openapi.json';
const PAGES_URL = '/docs';
/** The pages run their own scripts and nothing else; their program writes styles into its elements. */
const PAGES_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** True for the routes that the documentation itself is made of. */
export function isDocumentationUrl(url: string): boolean {
  return url === DOCUMENT_URL || url === PAGES_URL || url.startsWith(`${PAGES_URL}/`);
}

/** Serves the document and its pages. It is written when it is first asked for, not at start. */
export function installDocumentation(app: NestFastifyApplication): void {
  app
    .getHttpAdapter()
    .getInstance()
    .addHook('onSend', (request, reply, _payload, done) => {
      if (isDocumentationUrl(request.url)) reply.header('Content-Security-Policy', PAGES_POLICY);
      done();
    });
  SwaggerModule.setup(PAGES_URL, app, () => openApiDocument(app), {
    jsonDocumentUrl: DOCUMENT_URL,
    raw: ['json'],
  });
}

type JsonSchema = Record<string, unknown> & { readonly $defs?: Readonly<Record<string, JsonSchema>> };

/**
 * The OpenAPI 3.1 document of the routes of the application, made from the schemas that validate
 * them. The same application always gives the same document.
 */
export function openApiDocument(app: NestFastifyApplication): OpenAPIObject {
  const document = SwaggerModule.createDocument(
    app,
    new DocumentBuilder()
      .setOpenAPIVersion('3.1.0')
      .setTitle('Payments')
      .setDescription(
        'Schedules payments: never paid twice, never sent early. Late is visible, and an unknown outcome is a state of its own, never a guess.',
      )
      .setVersion('1')
      .addServer('/')
      .addTag('payments', 'Create, follow and steer payments.')
      .addTag('reviews', 'What people have to look into, and what two of them decide.')
      .addTag('lanes', 'See what keeps payments back at a provider; pause and resume it.')
      .addTag('webhooks', 'Events of providers.')
      .addTag('webhook endpoints', 'Where clients hear of their payments.')
      .addBearerAuth({
        type: 'http',
        scheme: 'bearer',
        bearerFormat: 'API key or JWT',
        description:
          'Machines: an API key, ps_live_… or ps_test_…. People: an access token of the issuer, at most 15 minutes old.',
      })
      .build(),
    { standardSchemaConverter: toJsonSchema, operationIdFactory: (_controller, method) => method },
  );
  const problem = toJsonSchema(Problem, { schemaType: 'output' });
  document.components = {
    ...document.components,
    schemas: { ...document.components?.schemas, ...(problem.components as object) },
  };
  for (const path of Object.values(document.paths)) {
    for (const operation of Object.values(path as Record<string, Operation>)) {
      writeRefusals(operation);
      // The package calls every body required.
      if (operation.requestBody && takesNoMembers(operation.requestBody)) {
        operation.requestBody.required = false;
      }
    }
  }
  return document;
}

/** The package asks zod for the dialect of OpenAPI 3.0 whatever the version says; 3.1 is 2020-12. */
function toJsonSchema(
  schema: unknown,
  { schemaType }: { readonly schemaType: 'input' | 'output' },
): { schema: unknown; components: Record<string, unknown> } {
  const json = z.toJSONSchema(schema as z.ZodType, {
    target: 'draft-2020-12',
    io: schemaType,
    unrepresentable: 'throw',
    // zod leaves out the examples of a schema that transforms its input; ours are examples of input.
    override: ({ zodSchema, jsonSchema }) => {
      const examples = z.globalRegistry.get(zodSchema)?.['examples'];
      if (Array.isArray(examples)) jsonSchema.examples ??= examples;
    },
  }) as JsonSchema;
  const { $schema: _dialect, $defs = {}, ...root } = json;
  const components: Record<string, unknown> = {};
  for (const [name, definition] of Object.entries($defs)) components[name] = withoutId(definition);
  const id = root['id'];
  if (typeof id !== 'string') return { schema: rerooted(root), components: rerooted(components) };
  components[id] = withoutId(root);
  return { schema: { $ref: `#/components/schemas/${id}` }, components: rerooted(components) };
}

function withoutId({ id: _id, ...schema }: JsonSchema): JsonSchema {
  return schema;
}

/** zod's definitions become components of the document. */
function rerooted<T>(value: T): T {
  return JSON.parse(JSON.stringify(value).replaceAll('"#/$defs/', '"#/components/schemas/')) as T;
}

interface RequestBody {
  required?: boolean;
  readonly content?: Readonly<Record<string, { readonly schema?: { readonly $ref?: string } }>>;
}

function takesNoMembers({ content }: RequestBody): boolean {
  return content?.['application/json']?.schema?.$ref === '#/components/schemas/NoMembers';
}

interface Operation {
  requestBody?: RequestBody;
  [REFUSALS_EXTENSION]?: readonly ProblemCode[];
  responses?: Record<string, unknown>;
}

/** One response per status, with an example of every code that it can carry. */
function writeRefusals(operation: Operation): void {
  const codes = operation[REFUSALS_EXTENSION];
  if (codes === undefined) return;
  delete operation[REFUSALS_EXTENSION];
  const byStatus = Map.groupBy(codes, (code) => PROBLEMS[code].status);
  for (const [status, ofStatus] of [...byStatus].sort(([a], [b]) => a - b)) {
    operation.responses = { ...operation.responses, [String(status)]: refusal(ofStatus) };
  }
  if (codes.includes('rate_limited')) writeLimits(operation.responses ?? {});
}

/** Draft "RateLimit header fields for HTTP" of the IETF; structured fields. */
const LIMIT_HEADERS = {
  'RateLimit-Policy': {
    description:
      'The limits that count this request: the burst `q`, and the seconds `w` in which it comes back.',
    schema: { type: 'string' },
    example: '"client";q=200;w=2, "tenant";q=600;w=2',
  },
  RateLimit: {
    description: 'What is left of each, `r`, and the seconds `t` until there is more.',
    schema: { type: 'string' },
    example: '"client";r=199;t=1, "tenant";r=598;t=1',
  },
};

/** On what a known caller gets; other refusals may come before the caller is known. */
function writeLimits(responses: Record<string, unknown>): void {
  for (const [status, response] of Object.entries(responses)) {
    if (!/^[23]/.test(status) && status !== '429') continue;
    const { headers, ...rest } = response as { readonly headers?: object };
    responses[status] = { ...rest, headers: { ...headers, ...LIMIT_HEADERS } };
  }
}

function refusal(codes: readonly ProblemCode[]): unknown {
  const waits = codes.some((code) => PROBLEMS[code].retryable);
  return {
    description: codes.map((code) => `\`${code}\`: ${PROBLEMS[code].detail}`).join('\n\n'),
    ...(waits && {
      headers: { 'Retry-After': { description: 'Whole seconds to wait.', schema: { type: 'integer' } } },
    }),
    content: {
      [PROBLEM_CONTENT_TYPE]: {
        schema: { $ref: '#/components/schemas/Problem' },
        examples: Object.fromEntries(codes.map((code) => [code, { value: exampleOf(code) }])),
      },
    },
  };
}

function exampleOf(code: ProblemCode): unknown {
  const { status, title, detail, retryable } = PROBLEMS[code];
  const requestId = '019b1f0a-0000-7000-8000-000000000000';
  return {
    type: `urn:problem:${code}`,
    title,
    status,
    detail,
    instance: `urn:request:${requestId}`,
    code,
    request_id: requestId,
    retryable,
  };
}
