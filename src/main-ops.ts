#!/usr/bin/env -S node --max-semi-space-size=16
// Young objects in 48 MiB: by default they take 100 MiB more, for commands that read files of any size.
import 'reflect-metadata';
import { runPayments } from './ops/program.js';

process.exitCode = await runPayments(process.argv.slice(2), {
  env: process.env,
  folder: process.cwd(),
  isInteractive: process.stdout.isTTY === true,
  out: (text) => process.stdout.write(`${text}\n`),
  err: (text) => process.stderr.write(`${text}\n`),
});
