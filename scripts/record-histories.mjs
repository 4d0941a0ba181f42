// Records the histories of the replay tier for this release: node scripts/record-histories.mjs [scenario…]
// Run it once before a release and commit the files; later workflow code must replay them.
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';

const recorder = fileURLToPath(new URL('../test/replay/recorder.ts', import.meta.url));
const { module } = await runnerImport(recorder);
await module.recordHistories(process.argv.slice(2), (line) => process.stdout.write(`${line}\n`));
