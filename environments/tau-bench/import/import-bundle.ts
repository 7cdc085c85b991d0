import { UsageError } from "../../../src/errors.ts";
import { parsePythonJson } from "../../../packages/python-values/src/json/json-parse.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import { PythonError } from "../../../packages/python-values/src/python-error.ts";
import type { PlainJson, PyValue } from "../../../packages/python-values/src/value.ts";
import { isPyDict, isPyList, toPyValue } from "../../../packages/python-values/src/value.ts";
import { userPromptsFromPython } from "../../../src/user/user-prompts-from-python.ts";
import type { BundleManifest } from "./bundle-manifest.ts";
import { manifestFile, sha256Of } from "./bundle-manifest.ts";
import { checkoutCommit } from "./checkout-commit.ts";
import { evaluateLiteral } from "./evaluate-literal.ts";
import { changedInputs, pinnedSource } from "./pinned-source.ts";
import type { PythonModule } from "./python-module.ts";
import { findAssignment, methodBody, unreadable, classNames } from "./python-module.ts";
import { readAgentPrompts } from "./read-agent-prompts.ts";
import { readTasks } from "./read-tasks.ts";
import { readToolClasses, readToolInfo } from "./read-tools.ts";
import { TauCheckout } from "./tau-checkout.ts";
import { assertReplaceable, writeBundle } from "./write-bundle.ts";

/** The source and the target of an import. */
export interface ImportOptions {
  /** A checkout of sierra-research/tau-bench. */
  readonly from: string;
  /** The bundle's folder: absent, empty, or a bundle, which is then replaced. */
  readonly to: string;
}

/** One domain of the original. */
interface DomainSource {
  readonly name: "retail" | "airline";
  readonly tables: readonly string[];
  readonly splits: readonly string[];
  /** The original's file of few-shot examples. */
  readonly fewShot: string;
}

const domains: readonly DomainSource[] = [
  {
    name: "retail",
    tables: ["orders", "products", "users"],
    splits: ["test", "train", "dev"],
    fewShot: "few_shot_data/MockRetailDomainEnv-few_shot.jsonl",
  },
  {
    name: "airline",
    tables: ["flights", "reservations", "users"],
    splits: ["test"],
    fewShot: "few_shot_data/MockAirlineDomainEnv-few_shot.jsonl",
  },
];

/**
 * Makes a bundle from a checkout of τ-bench: its tasks, tools, policies, databases, examples and prompts, read from
 * the Python sources without running them. The folder appears completely or not at all.
 *
 * **Source:** the layout of sierra-research/tau-bench.
 *
 * @throws UsageError naming file and line of invalid source, or the unusable folder.
 */
export async function importTauBench({ from, to }: ImportOptions): Promise<BundleManifest> {
  await assertReplaceable(to);
  const checkout = new TauCheckout(from);
  const files = new Map<string, Buffer | string>();
  for (const domain of domains) await readDomain(checkout, domain, files);
  await readPrompts(checkout, files);
  const license = await checkout.readIfPresent("LICENSE");
  if (license !== undefined) files.set("LICENSE", license);
  const { inputs } = checkout;
  const changed = changedInputs(inputs);
  const head = await checkoutCommit(from);
  const commit = changed.length === 0 ? pinnedSource.commit : (head ?? null);
  const manifest: BundleManifest = {
    format: 1,
    benchmark: "tau-bench",
    source: pinnedSource.repository,
    commit,
    ...(changed.length > 0 && commit === pinnedSource.commit && { changed: [...changed] }),
    license: license?.toString("utf8").startsWith("MIT License") === true ? "MIT" : "unknown",
    inputs,
    files: Object.fromEntries([...files].map(([name, content]) => [name, sha256Of(content)])),
  };
  files.set(manifestFile, `${JSON.stringify(manifest, null, 1)}\n`);
  await writeBundle(files, to);
  return manifest;
}

async function readDomain(
  checkout: TauCheckout,
  { name, tables, splits, fewShot }: DomainSource,
  files: Map<string, Buffer | string>,
): Promise<void> {
  const source = `tau_bench/envs/${name}`;
  for (const table of tables) {
    files.set(`${name}/${table}.json`, await readTable(checkout, `${source}/data/${table}.json`));
  }
  for (const split of splits) {
    const tasks = readTasks(await checkout.readModule(`${source}/tasks_${split}.py`), split);
    files.set(`${name}/tasks_${split}.json`, jsonText(tasks));
  }
  files.set(`${name}/tools.json`, jsonText(await readTools(checkout, `${source}/tools`)));
  files.set(`${name}/wiki.md`, await readWiki(checkout, source));
  const rules = await checkout.readModule(`${source}/rules.py`);
  files.set(`${name}/rules.json`, jsonText(readTexts(rules, "RULES")));
  const terminating = readTerminateTools(await checkout.readModule(`${source}/env.py`));
  files.set(`${name}/terminate_tools.json`, jsonText(terminating));
  const examples = await checkout.readIfPresent(fewShot);
  if (examples !== undefined) files.set(`few-shot/${name}.jsonl`, examples);
}

/** Reads a file unchanged, after checking that it is a table. */
async function readTable(checkout: TauCheckout, file: string): Promise<Buffer> {
  const content = await checkout.read(file);
  try {
    if (isPyDict(parsePythonJson(content.toString("utf8")))) return content;
  } catch (error) {
    if (!(error instanceof PythonError)) throw error;
    throw new UsageError(`Cannot read ${checkout.place(file)}: ${error.message}`, { cause: error });
  }
  throw new UsageError(`Cannot read ${checkout.place(file)}: expected an object`);
}

async function readTools(checkout: TauCheckout, folder: string): Promise<PyValue> {
  const classes = readToolClasses(await checkout.readModule(`${folder}/__init__.py`));
  const tools: PyValue[] = [];
  for (const { className, module } of classes) {
    tools.push(readToolInfo(await checkout.readModule(`${folder}/${module}.py`), className));
  }
  return tools;
}

/** Reads the policy: a text beside the module that loads it, or a literal in that module. */
async function readWiki(checkout: TauCheckout, source: string): Promise<string> {
  const module = await checkout.readModule(`${source}/wiki.py`);
  const value = findAssignment(module, module.root, "WIKI");
  if (value === undefined) {
    return (await checkout.read(`${source}/wiki.md`)).toString("utf8").replace(/\r\n?/g, "\n");
  }
  const text = evaluateLiteral(module, value);
  if (typeof text === "string") return text;
  throw unreadable(module, value, "another WIKI", "a text");
}

function readTexts(module: PythonModule, name: string): PyValue {
  const node = findAssignment(module, module.root, name);
  if (node === undefined)
    throw new UsageError(`Cannot read ${module.file}: expected "${name} = […]"`);
  const list = evaluateLiteral(module, node);
  if (isPyList(list) && list.every((item) => typeof item === "string")) return list;
  throw unreadable(module, node, `another ${name}`, "a list of texts");
}

/** Reads the value that a domain's class sets after its base is constructed. */
function readTerminateTools(module: PythonModule): PyValue {
  for (const className of classNames(module)) {
    const body = methodBody(module, className, "__init__");
    const node = body && findAssignment(module, body, "self.terminate_tools");
    if (node === undefined) continue;
    const list = evaluateLiteral(module, node);
    if (isPyList(list) && list.every((item) => typeof item === "string")) return list;
    throw unreadable(module, node, "another self.terminate_tools", "a list of texts");
  }
  return [];
}

async function readPrompts(
  checkout: TauCheckout,
  files: Map<string, Buffer | string>,
): Promise<void> {
  const agent = await checkout.readModule("tau_bench/agents/chat_react_agent.py");
  const types = await checkout.readModule("tau_bench/types.py");
  files.set("agent-prompts.json", jsonText({ ...readAgentPrompts(agent, types) }));
  const user = await checkout.readModule("tau_bench/envs/user.py");
  const { llm, react, verify, reflect } = userPromptsFromPython(user.source, user.file);
  const instructed = ({ withInstruction, withoutInstruction }: typeof llm) => ({
    none: withoutInstruction,
    with: withInstruction.replace("{instruction}", "DO THIS"),
  });
  const prompts = { llm: instructed(llm), react: instructed(react), verify, reflect };
  files.set("user-simulator-prompts.json", jsonText(prompts));
}

function jsonText(value: PlainJson): string {
  return `${stringifyPythonJson(toPyValue(value), { indent: 1 })}\n`;
}
