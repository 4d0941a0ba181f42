// Who may import whom; `npm run imports` and `npm run check` run it. Three kinds of rule:
//   folders   what a folder may import from the tree, as an allow-list, with the reason;
//   packages  where a package may be imported at all;
//   anything  what no file may do.
// A folder without a rule here fails `every-folder-has-a-rule`. `test/unit/import-rules.test.ts` plants
// one violation per rule and expects the report. Type-only imports count unless a rule says otherwise.

const TREE = '^(src|workflows|activities|bench|test)/';
const DOMAIN = '^src/domain/';
const PERSISTENCE = '^src/persistence/(?!entities/)';
const PLATFORM = '^src/platform/';
const CONFIG = '^src/config/';
const METRICS = '^src/metrics/';
const HTTP = '^src/http/';
const PROVIDER_PORT = '^src/providers/[^/]+[.]ts$';
const WORKFLOW_CONTRACT = '^workflows/contract[.]ts$';
/** Roots of the processes (`main-*.ts`, the modules beside them): they put the parts together. */
const ROOTS = '^src/[^/]+[.]ts$';
const TYPES = { dependencyTypesNot: ['type-only'] };

const packages = (...names) => `(^|/)node_modules/(${names.join('|')})/`;

/** `folder` may import from the tree only itself and `allowed`. */
const folder = (name, from, comment, allowed) => ({
  name,
  severity: 'error',
  comment,
  from: { path: from },
  to: { path: TREE, pathNot: [from, ...allowed] },
});

/** The packages may be imported only from `allowed`. */
const placed = (name, names, comment, allowed) => ({
  name,
  severity: 'error',
  comment,
  from: { pathNot: allowed },
  to: { path: packages(...names) },
});

const never = (name, comment, from, to) => ({ name, severity: 'error', comment, from, to });

const FOLDERS = [
  never(
    'domain-is-a-leaf',
    'Rules about money and time are pure: no package, no Node built-in, no other folder. They run the same in ' +
      'a workflow, in a test and in the API, and nothing can make them depend on a clock or a network.',
    { path: DOMAIN },
    { pathNot: DOMAIN },
  ),
  never(
    'workflows-are-deterministic',
    'Workflow code is replayed: it may use the domain, Temporal for workflows, and types of activities. ' +
      'Node built-ins, Nest, TypeORM and services would run again, with another answer.',
    { path: '^workflows/' },
    {
      pathNot: [
        '^workflows/',
        DOMAIN,
        '^activities/',
        packages('@temporalio/workflow', '@temporalio/common'),
      ],
    },
  ),
  never(
    'workflows-see-activities-as-types',
    'A value imported from an activity would put its code into the workflow bundle.',
    { path: '^workflows/' },
    { path: '^activities/', ...TYPES },
  ),
  never(
    'activities-are-thin',
    'Activities translate between Temporal and services, whose interfaces they know as types: no framework, ' +
      'no SQL, no provider SDK. Deviation: the shapes of input and answer come from workflows/contract, so ' +
      'that both sides of an activity share one text.',
    { path: '^activities/' },
    {
      pathNot: [
        '^activities/',
        DOMAIN,
        WORKFLOW_CONTRACT,
        '^src/(submission|payments|reconciliation)/',
        packages('@temporalio/activity', '@temporalio/common'),
      ],
    },
  ),
  never(
    'activities-see-services-as-types',
    'Services are handed in by the worker; an import of their code would bring the database into every test.',
    { path: '^activities/' },
    { path: ['^src/(submission|payments|reconciliation)/', '^workflows/'], ...TYPES },
  ),
  folder(
    'payments',
    '^src/payments/',
    'Intake, lifecycle and reads of payments. It asks providers through their port and never knows an adapter, ' +
      'Temporal, or the features built on it (submission, review, reconciliation, webhooks). Deviations: its ' +
      'controller needs who calls (auth), problems and route documents (http); intake counts (metrics).',
    [
      DOMAIN,
      PERSISTENCE,
      PROVIDER_PORT,
      '^src/(lanes|outbox|audit|encryption)/',
      PLATFORM,
      CONFIG,
      '^src/auth/(authenticate|scopes)[.]ts$',
      HTTP,
      METRICS,
    ],
  ),
  folder(
    'submission',
    '^src/submission/',
    'From due to recorded outcome. It moves payments through the gate and no other part of payments. ' +
      'Deviations: it implements the interfaces that activities declare, with the shapes of workflows/contract ' +
      '(types only, next rule); inquiry lives here, because it records outcomes under the same claim.',
    [
      DOMAIN,
      PERSISTENCE,
      PROVIDER_PORT,
      '^src/payments/(earlier-generation|gate|late-answer|payment[.]store|review-moves)[.]ts$',
      '^src/(lanes|outbox|audit|encryption)/',
      PLATFORM,
      CONFIG,
      '^activities/',
      WORKFLOW_CONTRACT,
    ],
  ),
  never(
    'submission-sees-activities-as-types',
    'Submission works without Temporal; only shapes are shared.',
    { path: '^src/submission/' },
    { path: ['^activities/', '^workflows/'], ...TYPES },
  ),
  folder(
    'features-on-payments',
    '^src/(review|reconciliation|webhooks)/',
    'They change payments through the services of payments, never through its stores, and do not know each ' +
      'other. Their controllers need auth and http, as the one of payments does.',
    [
      DOMAIN,
      PERSISTENCE,
      PROVIDER_PORT,
      '^src/payments/(?!.*([.]store|[.]controller|/?gate)[.]ts$)',
      '^src/(lanes|outbox|audit|encryption)/',
      PLATFORM,
      CONFIG,
      '^src/auth/(authenticate|scopes)[.]ts$',
      HTTP,
      METRICS,
    ],
  ),
  never(
    'features-do-not-know-each-other',
    'Review, reconciliation and webhooks meet in payments, so that each can be read alone.',
    { path: '^src/(review|reconciliation|webhooks)/' },
    { path: '^src/(review|reconciliation|webhooks)/', pathNot: '^src/$1/' },
  ),
  folder(
    'providers',
    '^src/providers/',
    'An adapter speaks its protocol and knows the port: not payments, not the database, not the simulator. ' +
      'Deviation: the registry reads which adapters are configured (config).',
    [DOMAIN, PLATFORM, CONFIG],
  ),
  never(
    'adapters-do-not-know-each-other',
    'An adapter that leans on another changes when that one does.',
    { path: '^src/providers/([^/]+)/' },
    { path: ['^src/providers/[^/]+/', CONFIG], pathNot: '^src/providers/$1/' },
  ),
  folder(
    'auth-and-audit',
    '^src/(auth|audit|encryption)/',
    'Parts that features build on: they know no feature and no Temporal.',
    [DOMAIN, PERSISTENCE, PLATFORM, CONFIG],
  ),
  folder(
    'rate-limits',
    '^src/rate-limits/',
    'How fast callers may call. It is told who calls, and knows neither credentials nor routes.',
    [DOMAIN, PERSISTENCE, PLATFORM, CONFIG],
  ),
  folder(
    'lanes',
    '^src/lanes/',
    'A lane belongs to a provider. Deviations: it uses the names and capabilities of the provider port; its ' +
      'controller needs who calls (auth), problems and route documents (http).',
    [
      DOMAIN,
      PERSISTENCE,
      PLATFORM,
      CONFIG,
      PROVIDER_PORT,
      '^src/auth/(authenticate|scopes)[.]ts$',
      '^src/audit/audit-log[.]ts$',
      HTTP,
    ],
  ),
  folder(
    'outbox',
    '^src/outbox/',
    'Knows where to hand rows on as a port (workflow-starter), never who implements it.',
    [DOMAIN, PERSISTENCE, PLATFORM, CONFIG],
  ),
  folder(
    'invariants',
    '^src/invariants/',
    'Judges the tables from outside, so that a mistake of a feature cannot hide in its check. Deviation: the ' +
      'job shows its findings as metrics.',
    [DOMAIN, PERSISTENCE, PLATFORM, CONFIG, METRICS],
  ),
  folder(
    'orchestration',
    '^src/orchestration/',
    'Implements the port of the outbox on Temporal. Ids and signals come from workflows/contract.',
    [DOMAIN, '^src/outbox/workflow-starter[.]ts$', WORKFLOW_CONTRACT, PLATFORM, CONFIG],
  ),
  folder(
    'worker',
    '^src/worker/',
    'Runs, drains and watches the worker process. Deviation: it composes that process (health port, metrics, ' +
      'invariant job, lanes, outbox, submission, the inbox of webhooks), because order of start and stop is its ' +
      'subject; the API, its controllers and payments stay out.',
    [
      '^activities/',
      WORKFLOW_CONTRACT,
      '^src/(submission|reconciliation|outbox|lanes|invariants|orchestration|audit|encryption)/',
      '^src/webhooks/(incoming/webhook-inbox|outgoing/webhook-deliverer)[.]ts$',
      '^src/http/(health-server|readiness)[.]ts$',
      DOMAIN,
      PERSISTENCE,
      PROVIDER_PORT,
      METRICS,
      PLATFORM,
      CONFIG,
    ],
  ),
  folder(
    'persistence',
    '^src/persistence/',
    'Tables, migrations and the connection; the meaning of rows belongs to the stores above it.',
    [DOMAIN],
  ),
  folder(
    'http',
    '^src/http/',
    'The edge of every route, without knowing a route. Deviations: it counts requests (metrics) and translates ' +
      'faults of the database.',
    [DOMAIN, '^src/persistence/database-errors[.]ts$', METRICS, PLATFORM, CONFIG],
  ),
  folder(
    'ops',
    '^src/ops/',
    'A command on payments calls the HTTP API with the credential of its caller, so scopes have no side door. ' +
      'The commands with a database role of their own (migrate, invariants, audit, doctor, keys, reconcile) use ' +
      'the parts below features; doctor asks each provider through its port. Deviation: reconcile imports a file ' +
      'of the operator, which no route takes, through the services of reconciliation.',
    [
      DOMAIN,
      PERSISTENCE,
      PROVIDER_PORT,
      '^src/(auth|audit|encryption|invariants|orchestration|rate-limits|reconciliation)/',
      PLATFORM,
      CONFIG,
    ],
  ),
  never(
    'edges-call-services',
    'A controller, the HTTP edge and a command hold no query. Type-only imports are fine: a row is what a ' +
      'service answers with. Deviation: commands write API keys through the store of auth, which has no service.',
    { path: ['[.]controller[.]ts$', HTTP, '^src/ops/'] },
    {
      path: ['^src/(?!auth/).*[.]store[.]ts$', '^src/payments/gate[.]ts$', '^src/persistence/entities/'],
      ...TYPES,
    },
  ),
  folder(
    'metrics',
    '^src/metrics/',
    'Names every metric once. Deviation: gauges of the database are read here (persistence).',
    [DOMAIN, PERSISTENCE, PLATFORM, CONFIG],
  ),
  folder('config-is-a-leaf', '^src/config/', 'Reads the environment once, before anything else exists.', [
    DOMAIN,
  ]),
  folder(
    'platform-is-a-leaf',
    '^src/platform/',
    'Clock, ids, hashes and logger: used by all, so it uses none.',
    [DOMAIN],
  ),
  never(
    'simulator-stands-alone',
    'The simulator plays a stranger. Shared code would let one mistake agree with itself on both sides.',
    { path: '^src/simulator/' },
    { pathNot: '^src/simulator/', dependencyTypesNot: ['core'] },
  ),
  never(
    'simulator-is-a-process',
    'The product meets the simulator over HTTP, as it meets a provider.',
    { pathNot: ['^src/simulator/', '^src/main-simulator[.]ts$'] },
    { path: '^src/simulator/' },
  ),
  folder('dev', '^src/dev/', 'The local stack starts processes; it holds no part of the product.', [
    CONFIG,
    PLATFORM,
  ]),
  never(
    'dev-stays-out-of-the-product',
    'A production image has no development dependencies, so no product file may need the local stack.',
    { pathNot: ['^src/dev/', '^src/main-dev[.]ts$', '^bench/'] },
    { path: '^src/dev/' },
  ),
  folder(
    'bench',
    '^bench/',
    'Measures the product from outside, over its API and with connections of its own, so that a mistake of ' +
      'the product cannot hide in its measurement. It starts the stack through dev, and shares vocabulary and the texts of ' +
      'the invariants.',
    [DOMAIN, '^src/(dev|invariants)/', PERSISTENCE, WORKFLOW_CONTRACT, CONFIG, PLATFORM],
  ),
  never(
    'workflow-code-stays-in-its-bundle',
    'Outside the workflow sandbox only the contract (id, input, signals, task queue) means anything.',
    { pathNot: '^workflows/' },
    { path: '^workflows/', pathNot: WORKFLOW_CONTRACT },
  ),
  never(
    'activities-are-run-by-the-worker',
    'Whoever else calls an activity would skip the retries and time-outs that it was written for.',
    { pathNot: ['^activities/', '^src/worker/', ROOTS] },
    { path: '^activities/', ...TYPES },
  ),
  never(
    'roots-are-not-imported',
    'A process root and a module put parts together; a part that imports one imports the whole process.',
    { pathNot: ROOTS },
    { path: [ROOTS, '[.]module[.]ts$'] },
  ),
];

const PACKAGES = [
  placed(
    'temporal-client-in-orchestration',
    ['@temporalio/client'],
    'Every call to Temporal has a deadline and the same conflict policy there. Deviation: the local stack ' +
      'registers search attributes and retention of the server it just started, and bench counts runs itself.',
    ['^src/orchestration/', '^src/dev/temporal/', '^bench/'],
  ),
  placed('temporal-worker-in-worker', ['@temporalio/worker'], 'One place drains a worker.', ['^src/worker/']),
  placed(
    'temporal-workflow-in-workflows',
    ['@temporalio/workflow'],
    'It works only inside the workflow sandbox.',
    ['^workflows/'],
  ),
  placed(
    'temporal-activity-in-activities',
    ['@temporalio/activity'],
    'Services get a cancel signal and a heartbeat as arguments and run without Temporal.',
    ['^activities/'],
  ),
  placed(
    'temporal-common-at-the-seams',
    ['@temporalio/common', '@temporalio/proto'],
    'Payments work without Temporal; only the code that talks to it may know its types.',
    ['^workflows/', '^activities/', '^src/orchestration/', '^src/worker/', '^src/dev/temporal/'],
  ),
  placed(
    'sql-in-persistence',
    ['pg', 'typeorm', '@nestjs/typeorm'],
    'One pool with its time-outs and its handling of poisoned clients; stores get it as a Database. Deviation: ' +
      'the local stack asks the server it just started whether it answers, and bench judges rows itself.',
    ['^src/persistence/', '^src/dev/postgres/', '^bench/'],
  ),
  placed(
    'nest-at-the-edges',
    ['@nestjs/[^/]+', 'nestjs-pino', 'fastify', '@fastify/[^/]+', 'rxjs', 'reflect-metadata'],
    'Controllers, guards and modules need the framework; everything below is plain classes and functions that ' +
      'a test builds by hand.',
    ['^src/(payments|lanes|review|reconciliation|webhooks|auth|rate-limits|http|platform)/', ROOTS],
  ),
  placed('tokens-in-auth', ['jose'], 'One place decides which tokens let somebody in.', ['^src/auth/']),
  placed('stripe-in-its-adapter', ['stripe'], 'A provider SDK belongs to its adapter.', [
    '^src/providers/stripe/',
  ]),
  placed('prometheus-in-metrics', ['prom-client'], 'Every metric is named and labelled in one place.', [
    '^src/metrics/',
  ]),
  placed(
    'foreign-files-in-reconciliation',
    ['csv-parse', 'saxes'],
    'What a provider or a bank wrote is read in one place, with its bounds.',
    ['^src/reconciliation/'],
  ),
  placed(
    'address-ranges-in-outgoing-webhooks',
    ['ipaddr[.]js'],
    'One place judges which addresses a client may make us dial.',
    ['^src/webhooks/outgoing/'],
  ),
  placed('pino-in-platform', ['pino', 'pino-http'], 'One logger, with one allow-list of fields.', [
    '^src/platform/',
  ]),
  placed(
    'terminal-in-ops-and-dev',
    ['commander', 'cli-table3', 'listr2'],
    'A service process writes log lines, not tables and progress.',
    ['^src/ops/', '^src/dev/', '^bench/'],
  ),
  never(
    'development-packages',
    'A production install leaves them out: what needs one belongs to src/dev, bench or test.',
    { pathNot: ['^src/dev/', '^bench/', '^test/'] },
    { dependencyTypes: ['npm-dev'] },
  ),
  never(
    'listed-packages',
    'A package that another one happens to bring can vanish with its next version.',
    {},
    { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] },
  ),
];

const KNOWN_FOLDERS =
  'domain|payments|submission|review|reconciliation|webhooks|providers|auth|audit|encryption|rate-limits|lanes|outbox|' +
  'invariants|orchestration|worker|persistence|http|ops|metrics|config|platform|simulator|dev';

const ANYTHING = [
  never(
    'no-cycles',
    'Two files that need each other are one idea, or hide a third. A type-only import does not run.',
    {},
    { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
  ),
  never('resolvable', 'An import that leads nowhere fails at start.', {}, { couldNotResolve: true }),
  never('tests-are-not-imported', 'The build leaves test out.', { pathNot: '^test/' }, { path: '^test/' }),
  never(
    'every-folder-has-a-rule',
    'A new folder gets its row above, with its reason, before it imports anything.',
    { path: '^src/[^/]+/', pathNot: `^src/(${KNOWN_FOLDERS})/` },
    {},
  ),
];

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [...FOLDERS, ...PACKAGES, ...ANYTHING],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      extensions: ['.ts', '.js', '.json'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
