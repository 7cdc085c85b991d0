// Reports which pinned packages have newer releases.
//
//   npm run pins [-- --check]
//
// Prints a line a pin: its package, the pinned and the newest release, and its files. Needs the package indexes
// (PIP_INDEX_URL and npm's registry name others) and, for sources, git (TURNWRIGHT_TRAINERS_GIT, as for `accept`).
// With --check, the exit status is 1 if a release is newer than its pin, and else 3 if an index did not answer. A pin
// may be held: `# held: REASON` stands before it, or its newest release does not run on our oldest Node.js.
import { readFileSync } from "node:fs";
import { compareVersions, newestRelease } from "./newest-release.mjs";
import { readPins } from "./read-pins.mjs";

/** Concurrent requests. */
const AT_ONCE = 8;

const { engines } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const ownNode = Number(/\d+/.exec(engines.node)[0]);

/** Compares a pin with its index. */
async function compare(pin) {
  try {
    const { version, needsNode } = await newestRelease(pin);
    const isOlder =
      pin.index === "git" ? version !== pin.version : compareVersions(pin.version, version) < 0;
    if (!isOlder) {
      const isAhead = pin.index !== "git" && compareVersions(pin.version, version) > 0;
      return { ...pin, newest: isAhead ? version : "", state: isAhead ? "not released" : "newest" };
    }
    const held =
      pin.held ?? (needsNode > ownNode ? `needs Node.js ${needsNode} or newer` : undefined);
    return { ...pin, newest: version, state: held === undefined ? "moved" : `held: ${held}` };
  } catch (error) {
    return { ...pin, newest: "?", state: `not found: ${error.message}` };
  }
}

const args = process.argv.slice(2);
if (args.some((arg) => arg !== "--check")) {
  console.error("Usage: npm run pins [-- --check]");
  process.exit(2);
}
const waiting = readPins();
const rows = [];
await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    for (let pin = waiting.shift(); pin !== undefined; pin = waiting.shift()) {
      rows.push(await compare(pin));
    }
  }),
);
const short = (version) => (/^[0-9a-f]{40}$/.test(version) ? version.slice(0, 9) : version);
for (const { name, version, newest, state, files } of rows.toSorted((a, b) =>
  a.name < b.name ? -1 : 1,
)) {
  const place = files.length > 2 ? `${files[0]} and ${files.length - 1} more` : files.join(", ");
  const columns = [name.padEnd(28), short(version).padEnd(13), short(newest).padEnd(13)];
  console.log(`${columns.join(" ")} ${state} (${place})`);
}
const count = (state) => rows.filter((row) => row.state.startsWith(state)).length;
const [moved, missing] = [count("moved"), count("not found")];
console.log(`${rows.length} pins: ${moved} moved, ${count("held")} held, ${missing} not found`);
if (args.includes("--check")) process.exitCode = moved > 0 ? 1 : missing > 0 ? 3 : 0;
