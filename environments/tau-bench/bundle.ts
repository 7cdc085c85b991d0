import { readFile } from "node:fs/promises";
import path from "node:path";
import { UsageError } from "../../src/errors.ts";
import type { ToolDefinition } from "../../src/message.ts";
import { toolsFromOpenAi } from "../../src/message.ts";
import type { PyValue } from "../../packages/python-values/src/value.ts";
import { isPyList } from "../../packages/python-values/src/value.ts";
import { airlineDomain } from "./airline/airline-domain.ts";
import { checkBundle } from "./import/bundle-manifest.ts";
import { retailDomain } from "./retail/retail-domain.ts";
import { parseBundleJson, readRecords } from "./read-records.ts";
import type { SharedTable } from "./record-table.ts";
import type { SharedTables, TauDomain } from "./tau-domain.ts";
import { readSplitTasks, type SplitTasks } from "./read-tasks.ts";

/** τ-bench's data as `env import tau-bench` writes them: one folder for each domain. Frozen. */
export interface TauBenchBundle {
  /** The folder of the data. */
  readonly directory: string;
  readonly retail: DomainData;
  readonly airline: DomainData;
}

/** One domain's data. Frozen: every episode shares it. */
export interface DomainData {
  readonly tables: SharedTables;
  /** Tasks by split. */
  readonly tasks: Readonly<Record<string, SplitTasks>>;
  /** The agent's instructions. */
  readonly wiki: string;
  /** Rules that the original defines and never shows to the agent. */
  readonly rules: readonly string[];
  readonly tools: readonly ToolDefinition[];
  /** Names of the tools that end an episode. */
  readonly terminatingTools: ReadonlySet<string>;
}

/** The name of one of a bundle's domains, and of its folder. */
export type TauDomainName = "retail" | "airline";

const domains = {
  retail: retailDomain as unknown as TauDomain,
  airline: airlineDomain as unknown as TauDomain,
} as const;

const loaded = new Map<string, Promise<DomainData>>();

/**
 * Loads a bundle, or the named domains of it. A domain is read once a process and shared by all callers. If the
 * folder has a manifest, the files must match it.
 *
 * @throws UsageError naming the file and the field that is missing or of another type.
 */
export async function loadTauBenchBundle<Name extends TauDomainName = TauDomainName>(
  directory: string,
  { only }: { readonly only?: readonly Name[] } = {},
): Promise<Pick<TauBenchBundle, "directory" | Name>> {
  const folder = path.resolve(directory);
  const names: readonly TauDomainName[] = only ?? ["retail", "airline"];
  const bundle: { directory: string; retail?: DomainData; airline?: DomainData } = {
    directory: folder,
  };
  // One after the other, so that the error always names the first of several faults.
  for (const name of names) bundle[name] = await loadDomain(folder, name);
  return Object.freeze(bundle) as Pick<TauBenchBundle, "directory" | Name>;
}

function loadDomain(directory: string, name: TauDomainName): Promise<DomainData> {
  const key = path.join(directory, name);
  let data = loaded.get(key);
  if (data === undefined) {
    data = readDomain(directory, domains[name]);
    loaded.set(key, data);
    // A folder that could not be read may be repaired and tried again.
    data.catch(() => loaded.delete(key));
  }
  return data;
}

async function readDomain(directory: string, domain: TauDomain): Promise<DomainData> {
  await checkBundle(directory, { under: `${domain.name}/` });
  const folder = path.join(directory, domain.name);
  const tables: Record<string, SharedTable> = {};
  for (const name of domain.tableNames) tables[name] = await readTable(folder, name);
  const tasks: Record<string, SplitTasks> = {};
  for (const split of domain.splits) tasks[split] = await readTasks(folder, domain, split);
  return Object.freeze({
    tables: Object.freeze(tables),
    tasks: Object.freeze(tasks),
    wiki: await readText(path.join(folder, "wiki.md")),
    rules: await readStrings(path.join(folder, "rules.json")),
    tools: await readTools(path.join(folder, "tools.json"), domain),
    terminatingTools: new Set(await readStrings(path.join(folder, "terminate_tools.json"))),
  });
}

async function readTable(folder: string, name: string): Promise<SharedTable> {
  const file = path.join(folder, `${name}.json`);
  return readRecords(await readBytes(file), file);
}

async function readTasks(folder: string, domain: TauDomain, split: string): Promise<SplitTasks> {
  const file = path.join(folder, `tasks_${split}.json`);
  return readSplitTasks(await readBytes(file), file, { environment: `tau-${domain.name}`, split });
}

async function readTools(file: string, domain: TauDomain): Promise<readonly ToolDefinition[]> {
  const tools = toolsFromOpenAi(await readJson(file), file);
  const unknown = tools.find(({ name }) => !domain.tools.has(name));
  if (unknown !== undefined) {
    throw new UsageError(
      `Cannot read ${file}: there is no tool ${JSON.stringify(unknown.name)} in τ-bench ` +
        `${domain.name}, expected ${[...domain.tools.keys()].join(", ")}`,
    );
  }
  return tools;
}

async function readStrings(file: string): Promise<readonly string[]> {
  const list = await readJson(file);
  if (!isPyList(list) || !list.every((item) => typeof item === "string")) {
    throw new UsageError(`Cannot read ${file}: expected a list of strings`);
  }
  return list;
}

async function readJson(file: string): Promise<PyValue> {
  return parseBundleJson(await readText(file), file);
}

async function readText(file: string): Promise<string> {
  return (await readBytes(file)).toString("utf8");
}

async function readBytes(file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    throw new UsageError(
      `Cannot read ${file}: expected a τ-bench bundle in the folder, ` +
        "as `turnwright env pull tau-bench` makes one",
      { cause: error },
    );
  }
}
