// Asks the package indexes for the newest release of a package.
import { spawnSync } from "node:child_process";

/** Time that one answer may take, in milliseconds. */
const PATIENCE_MS = 20_000;

/**
 * Returns the newest release: `{version, needsNode}`, where `needsNode` is the oldest major version of Node.js that it
 * takes, if it names one. Development and pre-releases, and those that were withdrawn, do not count.
 *
 * @param pin - A package of `readPins()`.
 * @throws if the index cannot be reached, or does not have the package.
 */
export async function newestRelease({ index, name }) {
  if (index === "git") return { version: newestCommit(name) };
  return index === "npm" ? await newestOfNpm(name) : { version: await newestOfPypi(name) };
}

/** The simple index in JSON. pip's own setting names another one. */
async function newestOfPypi(name) {
  const base = process.env.PIP_INDEX_URL ?? "https://pypi.org/simple";
  const type = "application/vnd.pypi.simple.v1+json";
  const { files } = await getJson(`${base.replace(/\/$/, "")}/${name.toLowerCase()}/`, type);
  const versions = files.filter(({ yanked }) => !yanked).map(versionOf);
  const newest = versions.filter(isFinal).toSorted(compareVersions).at(-1);
  if (newest === undefined) throw new Error(`${name} has no release`);
  return newest;
}

async function newestOfNpm(name) {
  const base = process.env.npm_config_registry ?? "https://registry.npmjs.org/";
  const { version, engines } = await getJson(`${base.replace(/\/$/, "")}/${name}/latest`);
  const [, major] = />=\s*(\d+)/.exec(engines?.node ?? "") ?? [];
  return { version, needsNode: major === undefined ? undefined : Number(major) };
}

function newestCommit(name) {
  const [owner, repository] = name.split("/");
  const pattern = process.env.TURNWRIGHT_TRAINERS_GIT ?? "https://github.com/{owner}/{name}";
  const url = pattern.replace("{owner}", owner).replace("{name}", repository);
  const { status, stdout } = spawnSync("git", ["ls-remote", url, "HEAD"], {
    encoding: "utf8",
    timeout: PATIENCE_MS,
    env: { ...process.env, GIT_TERMINAL_PROMPT: "0" },
  });
  if (status !== 0) throw new Error(`git cannot read ${url}`);
  return stdout.split("\t")[0];
}

async function getJson(url, accept = "application/json") {
  const reply = await fetch(url, {
    headers: { accept },
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  if (!reply.ok) throw new Error(`${url} answered HTTP ${reply.status}`);
  return await reply.json();
}

/** Returns the version in the name of a wheel or of a source archive. */
function versionOf({ filename }) {
  if (filename.endsWith(".whl")) return filename.split("-")[1];
  return filename
    .replace(/\.(tar\.(gz|bz2)|zip)$/, "")
    .split("-")
    .at(-1);
}

/** True for releases such as `2.0`, `1!2.0` and `2.0.post1`, and false for alphas, candidates and builds. */
function isFinal(version) {
  return /^[\d.]+(\.post\d+)?$/.test(version);
}

/** Compares versions number by number. `1.10` is newer than `1.9`, and `1.0.post1` newer than `1.0`. */
export function compareVersions(a, b) {
  const [left, right] = [a, b].map((version) => version.match(/\d+/g).map(Number));
  for (let index = 0; index < Math.max(left.length, right.length); index++) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
