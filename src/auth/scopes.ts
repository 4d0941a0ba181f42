import { applyDecorators, SetMetadata } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';

/** Everything a credential can be allowed to do. A route names exactly one of them. */
export const SCOPES = [
  'payments:create',
  'payments:read',
  'payments:cancel',
  'payments:update',
  'payments:operate',
  'payments:resolve',
  'lanes:operate',
  'webhooks:manage',
] as const;
export type Scope = (typeof SCOPES)[number];

/** What a machine of a role may do: its API key holds these. Whatever stands in no role here is for people. */
export const SCOPES_OF_KEY_ROLE = {
  client: ['payments:create', 'payments:read', 'payments:cancel', 'payments:update', 'webhooks:manage'],
  client_readonly: ['payments:read'],
} as const satisfies Readonly<Record<string, readonly Scope[]>>;
export type KeyRole = keyof typeof SCOPES_OF_KEY_ROLE;
export type KeyScope = (typeof SCOPES_OF_KEY_ROLE)[KeyRole][number];

/** True for what an API key can hold. A key is no person: it neither operates nor decides. */
export function isScopeOfKeys(scope: string): scope is KeyScope {
  return (SCOPES_OF_KEY_ROLE.client as readonly string[]).includes(scope);
}

/** What people of a role may do. A token names roles, never scopes, so that a role can change here. */
export const SCOPES_OF_ROLE = {
  operator: ['payments:read', 'payments:cancel', 'payments:operate', 'payments:resolve', 'lanes:operate'],
  approver: ['payments:read', 'payments:resolve'],
  /** Sees what a client sees, and each look is written down. */
  auditor: ['payments:read'],
} as const satisfies Readonly<Record<string, readonly Scope[]>>;
export type Role = keyof typeof SCOPES_OF_ROLE;

/** What a route says about its callers. Stands in Fastify's route config, so that it is judged before the body is read. */
export type RouteAccess =
  | { readonly kind: 'scope'; readonly scope: Scope }
  /** The handler verifies a provider's signature over the raw bytes before it believes any of them. */
  | { readonly kind: 'signature' }
  | { readonly kind: 'public' };

/** Metadata key under which the document generator finds the access of a route. */
export const ROUTE_ACCESS = 'payments:route-access';

const access = (value: RouteAccess, more: { readonly rawBody?: true } = {}): MethodDecorator =>
  applyDecorators(
    RouteConfig({ access: value, ...more }),
    SetMetadata(ROUTE_ACCESS, value),
  ) as MethodDecorator;

/** The route asks for a credential that holds this scope. */
export const NeedsScope = (scope: Scope): MethodDecorator => access({ kind: 'scope', scope });

/** The caller is a provider and has no credential of ours: the handler gets the bytes and verifies them. */
export const SignedByProvider = (): MethodDecorator => access({ kind: 'signature' }, { rawBody: true });

/** The route answers anybody: documentation only. */
export const Public = (): MethodDecorator => access({ kind: 'public' });
