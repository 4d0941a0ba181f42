import { Listr, type ListrTask } from 'listr2';
import { showDuration } from './pacing.js';
import type { PlanItem } from './stack-plan.js';
import type { StackFile } from './stack-file.js';

function toTasks(items: readonly PlanItem[], isGivenUp: () => boolean): ListrTask[] {
  return items.map((item): ListrTask => {
    if ('steps' in item) {
      return {
        title: item.title,
        skip: isGivenUp,
        task: (_context, task) =>
          task.newListr(toTasks(item.steps, isGivenUp), { concurrent: item.concurrent, exitOnError: false }),
      };
    }
    return {
      title: item.title,
      skip: isGivenUp,
      task: async (_context, task) => {
        const startedAt = performance.now();
        const note = await item
          .run((line) => (task.output = line))
          .catch((error: unknown) => {
            // The reason is printed once, below the list.
            throw new Error('see below', { cause: error });
          });
        const took = showDuration(performance.now() - startedAt);
        task.title = `${item.title} ${note ? `- ${note} ` : ''}(${took})`;
      },
    };
  });
}

/**
 * Runs a plan and shows each step: as a living list on a terminal, as lines elsewhere. Resolves when
 * every step has settled, failed ones included: the caller asks the stack whether it failed.
 */
export async function showPlan(items: readonly PlanItem[], isGivenUp: () => boolean): Promise<void> {
  const list = new Listr(toTasks(items, isGivenUp), {
    exitOnError: false,
    // Signals are ours: the list would end the program and leave the processes behind.
    registerSignalListeners: false,
    fallbackRenderer: 'simple',
    rendererOptions: {
      collapseSubtasks: false,
      collapseErrors: false,
      showErrorMessage: false,
      collapseSkips: false,
    },
    // The failure is printed once, at the end.
    fallbackRendererOptions: {},
  });
  await list.run();
}

/** What to do with a stack that runs, as commands to paste. */
export function welcome(
  stack: StackFile,
  paths: { readonly logs: string; readonly stackFile: string },
): string {
  const key = stack.api_keys.client;
  const payments = `${stack.api_url}/v1/payments`;
  const ui = stack.temporal_ui_url;
  const lines = [
    `  API          ${stack.api_url}   (documentation: ${stack.api_url}/docs)`,
    ui ? `  Temporal UI  ${ui}` : `  Temporal     ${stack.temporal_address}`,
    `  Logs         ${paths.logs}`,
    `  Addresses    ${paths.stackFile} (and keys)`,
    '',
    'Schedule a payment of 19.99 EUR in ten seconds:',
    '',
    `  curl -sS ${payments} \\`,
    `    -H 'Authorization: Bearer ${key}' \\`,
    `    -H "Idempotency-Key: try-$(od -An -N8 -tx1 /dev/urandom | tr -d ' ')" \\`,
    `    -H 'Content-Type: application/json' \\`,
    `    -d '{"amount":1999,"currency":"EUR","destination":"acct_example","execute_at":"'$(` +
      `date -u -d '+10 seconds' +%Y-%m-%dT%H:%M:%SZ 2>/dev/null || date -u -v+10S +%Y-%m-%dT%H:%M:%SZ)'"}'`,
    '',
    'Watch it, with the id from the answer:',
    '',
    `  curl -sS ${payments}/<id> -H 'Authorization: Bearer ${key}'`,
    '  npm run payments -- get <id>',
    ...(ui ? [`  ${ui}/namespaces/${stack.temporal_namespace}/workflows/<id>`] : []),
    '',
    'Ctrl-C stops everything and keeps the data; the next start takes seconds.',
  ];
  return lines.join('\n');
}
