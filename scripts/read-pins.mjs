// Reads every pinned package: of the trainers, of the inference servers, and of the agents that tests play.
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { servers } from "../interop/servers.mjs";
import { everyPackage, everySource, kinds } from "./trainers.mjs";

const root = fileURLToPath(new URL("../", import.meta.url));

/** The npm packages whose agents and clients the tests play against the gateway. */
const clients =
  /^(ai|openai|langchain|@(ai-sdk|openai|anthropic-ai|langchain|modelcontextprotocol)\/.+)$/;

/**
 * Returns all pins, each with the files that have it: `{index, name, version, files, held}`.
 *
 * `index` is `pypi`, `npm` or `git`. `held` is the reason why a pin does not follow new releases, if it has one: in
 * requirements, the comment `# held: REASON` before the line.
 */
export function readPins() {
  const pins = new Map();
  const all = [ofRequirements(), ofTables(), ofServers(), ofClients(), ofDocs()];
  for (const { file, ...pin } of all.flatMap((some) => [...some])) {
    const key = `${pin.index} ${pin.name} ${pin.version}`;
    const found = pins.get(key);
    if (found === undefined) pins.set(key, { ...pin, files: [file] });
    // A package is held if it is held in each of its files.
    else {
      const held = pin.held === undefined ? undefined : found.held;
      pins.set(key, { ...found, held, files: [...found.files, file] });
    }
  }
  return [...pins.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function* ofRequirements() {
  for (const { requirements } of Object.values(kinds)) {
    for (const name of readdirSync(requirements)) {
      const file = path.join(requirements, name);
      let held;
      for (const line of readFileSync(file, "utf8").split("\n")) {
        const [, spec, version] = /^([\w.-]+)==(\S+)$/.exec(line) ?? [];
        if (spec !== undefined) {
          yield { index: "pypi", name: spec, version, held, file: path.relative(root, file) };
        }
        held = /^# held: (.+)$/.exec(line)?.[1];
      }
    }
  }
}

function* ofTables() {
  const file = "scripts/trainers.mjs";
  for (const spec of everyPackage()) {
    const [name, version] = spec.split("==");
    yield { index: "pypi", name, version, file };
  }
  for (const { owner, name, commit } of everySource()) {
    yield {
      index: "git",
      name: `${owner}/${name}`,
      version: commit,
      held: "read at this commit",
      file,
    };
  }
}

function* ofServers() {
  for (const { name: server, engine, packages } of Object.values(servers)) {
    for (const spec of packages.flatMap(({ names }) => names)) {
      const [name, version] = spec.split("==");
      if (version === undefined) continue;
      const held = spec === engine ? undefined : `${server} asks for it`;
      yield { index: "pypi", name, version, held, file: "interop/servers.mjs" };
    }
  }
}

/** Commands in the documentation: `pip install trl==1.16.0`. */
function* ofDocs() {
  const files = ["docs", "integrations/trl"].flatMap((folder) =>
    readdirSync(path.join(root, folder)).map((name) => `${folder}/${name}`),
  );
  for (const file of files.filter((name) => /\.(md|py)$/.test(name))) {
    const text = readFileSync(path.join(root, file), "utf8");
    for (const [, name, version] of text.matchAll(/\b([a-z][\w.-]*)==(\d[\w.]*)/g)) {
      yield { index: "pypi", name, version, file };
    }
  }
}

function* ofClients() {
  const { packages } = JSON.parse(readFileSync(path.join(root, "package-lock.json"), "utf8"));
  for (const name of Object.keys(packages[""].devDependencies)) {
    if (!clients.test(name)) continue;
    const { version } = packages[`node_modules/${name}`];
    yield { index: "npm", name, version, file: "package.json" };
  }
}
