#!/usr/bin/env node
import 'reflect-metadata';
import { runPayments } from './ops/program.js';

process.exitCode = await runPayments(process.argv.slice(2), {
  env: process.env,
  folder: process.cwd(),
  isInteractive: process.stdout.isTTY === true,
  out: (text) => process.stdout.write(`${text}\n`),
  err: (text) => process.stderr.write(`${text}\n`),
});
