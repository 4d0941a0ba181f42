// Started by its API: the program would start more than Stripe.
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, port] = process.argv.slice(2);
const entry = path.join(folder, 'node_modules', 'emulate', 'dist', 'api.js');
const { createEmulator } = await import(pathToFileURL(entry).href);
await createEmulator({ service: 'stripe', port: Number(port), hostname: '127.0.0.1' });
