import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { modelFolder } from "../tokenizer/real-tokenizers.fixture.ts";
import {
  readOwnTemplates,
  readPublishedTemplates,
  type NamedTemplate,
} from "./chat-templates.fixture.ts";
import { RolloutError, UsageError } from "../errors.ts";
import { toolsFromOpenAi } from "../message.ts";
import type { PyDict } from "../../packages/python-values/src/value.ts";
import type { TokenCodec } from "../tokenizer/codec.ts";
import { loadTokenCodec } from "../tokenizer/load-codec.ts";
import { assembleRenderer } from "./assemble-renderer.ts";
import type { BoundTemplate } from "./bound-template.ts";
import { bindTemplate, tryRender } from "./bound-template.ts";
import { compileChatTemplate } from "../../packages/chat-template/src/chat-template.ts";
import { createControlTokenGuard } from "./guard/control-token-guard.ts";
import type { ProbeCall } from "./capability/probe-messages.ts";
import {
  assistantMessage,
  probeTools,
  systemMessage,
  toolMessage,
  userMessage,
} from "./capability/probe-messages.ts";
import type { Renderer } from "./renderer.ts";
import { splitSealed, unseal } from "./guard/seal.ts";
import { controlShapes, learnStopLiterals } from "./delta/stop-literals.ts";
import { adaptCallArguments } from "./text-arguments.ts";

const probedTools = toolsFromOpenAi(probeTools, "tools");
const call: ProbeCall = { id: "call00001", name: "find_parcel", arguments: { parcel_id: "A1" } };
const opening = [systemMessage("Be a helpful carrier."), userMessage("Where is my parcel?")];
const acting = assistantMessage({ content: "", calls: [call] });

type IdealResult =
  /** The ledger is the encoding of the template's rendering, id by id, after every turn. */
  | "exact"
  /** The template shows an earlier turn otherwise later on. */
  | "rewrites"
  /** The first sampled text merges with the end of the generation prompt when both are encoded at once. */
  | "merges"
  /** The template refuses the conversation. */
  | "not-renderable"
  /** The renderer refuses the delta. */
  | "refused"
  | "wrong";

/**
 * Plays a call, its result and two lines of talk with a policy that samples the template's own
 * text. It reasons if the generation prompt opens a block for that.
 */
async function playIdeal(renderer: Renderer): Promise<IdealResult> {
  const thought = renderer.card.opensReasoning ? { reasoning: "Let me see." } : {};
  const turns = [
    {
      assistant: assistantMessage({ content: "", calls: [call], ...thought }),
      answers: [toolMessage(call, '{"state": "moving"}')],
    },
    {
      assistant: assistantMessage({ content: "It is moving.", ...thought }),
      answers: [userMessage("thanks")],
    },
    {
      assistant: assistantMessage({ content: "Bye.", ...thought }),
      answers: [userMessage("One more thing")],
    },
  ];
  const { codec, card } = renderer;
  const tools = card.showsTools ? probedTools : [];
  try {
    const history: PyDict[] = [...opening];
    const ledger = [...(await renderer.prompt({ messages: history, tools })).ids];
    for (const { assistant, answers } of turns) {
      const before = await renderer.prompt({ messages: history, tools });
      const delta = await renderer.delta({
        history,
        assistant,
        environment: answers,
        tools,
        lastSampledId: undefined,
      });
      history.push(assistant, ...answers);
      const after = await renderer.prompt({ messages: history, tools });
      if (!after.text.startsWith(before.text)) return "rewrites";
      if (!after.text.endsWith(delta.text)) return "wrong";
      const end = after.text.length - delta.text.length;
      ledger.push(...(await codec.encode(after.text.slice(before.text.length, end))));
      if (ledger.join() !== (await codec.encode(after.text.slice(0, end))).join()) return "merges";
      ledger.push(...delta.ids);
      if (ledger.join() !== after.ids.join()) return "wrong";
      if (after.ids.join() !== (await codec.encode(after.text)).join()) return "wrong";
    }
    return "exact";
  } catch (error) {
    if (error instanceof UsageError) return "not-renderable";
    if (error instanceof RolloutError) return "refused";
    throw error;
  }
}

/** Writes a model folder with a tokenizer that has further control tokens. */
async function addTokens(dir: string, literals: readonly string[]): Promise<void> {
  const file = path.join(modelFolder("qwen3"), "tokenizer.json");
  const tokenizer = JSON.parse(await readFile(file, "utf8")) as {
    added_tokens: { id: number; content: string; special: boolean }[];
  };
  const known = tokenizer.added_tokens;
  const [first] = known;
  const next = 1 + Math.max(...known.map(({ id }) => id));
  const missing = literals.filter((content) => !known.some((token) => token.content === content));
  if (first === undefined) throw new Error("expected a tokenizer with added tokens");
  known.push(...missing.map((content, index) => ({ ...first, id: next + index, content })));
  await writeFile(path.join(dir, "tokenizer.json"), JSON.stringify(tokenizer));
}

const published = {
  marked: { same: 4612, different: 38 },
  acted: [
    "iklc__Qwen3.5-4B", // takes a user line in the tags of a tool result for one
    "iklc__StepFun3.5-Flash",
    "lcpp__NVIDIA-Nemotron-Nano-v2", // strikes out `</think>` in user lines
    "miles__qwen3.5_fixed",
    "miles__qwen3_fixed",
    "miles__qwen3_thinking_2507_and_next_fixed",
    "trl__qwen3_5_nothink",
    "trl__qwen3_6",
  ],
  played: {
    exact: 95,
    rewrites: 32,
    refused: 13,
    "not-renderable": 12,
    merges: 3,
  },
};

describe.each([
  [
    "templates in this repository",
    readOwnTemplates(),
    {
      marked: { same: 450, different: 0 },
      acted: [],
      played: { exact: 13, rewrites: 1, refused: 1 },
    },
  ],
  ["published templates", readPublishedTemplates(), published],
] as const)("%s", (_, templates, wanted) => {
  const bind = ({ source }: NamedTemplate): BoundTemplate => {
    const variables = new Map([
      ["bos_token", "<s>"],
      ["eos_token", "</s>"],
    ]);
    return bindTemplate(compileChatTemplate(source), variables, new Date(2026, 10, 21, 8));
  };

  test.skipIf(templates.length === 0)(
    "render marked text like the text itself, unless they act on its contents",
    async () => {
      const literals = ["<|im_end|>", "</s>", "</think>", "<tool_response>", '<|"|>'];
      const codec = {
        addedTokens: literals.map((content, id) => ({ id, content, special: true })),
      };
      const counts = { same: 0, different: 0 };
      const acted = new Set<string>();
      for (const named of templates) {
        const template = adaptCallArguments(bind(named));
        const guard = createControlTokenGuard({
          codec: codec as unknown as TokenCodec,
          policy: "neutralise",
          guardSystem: false,
          surroundings: [template.source],
        });
        const show = (messages: readonly PyDict[]): string | undefined =>
          tryRender(template, { messages, tools: probeTools, addGenerationPrompt: true });
        for (const literal of literals) {
          for (const content of [
            literal,
            ` a ${literal}\n`,
            `<tool_response>${literal}</tool_response>`,
          ]) {
            for (const messages of [
              [...opening, assistantMessage({ content: "Hi" }), userMessage(content)],
              [...opening, acting, toolMessage(call, content)],
            ]) {
              const { messages: sealed, seal } = guard.seal(messages, probeTools);
              const text = show(sealed);
              if (text !== undefined && seal !== undefined) {
                await splitSealed(text, seal, controlShapes);
              }
              const isSame = (text && (await unseal(text, seal))) === show(messages);
              if (isSame) counts.same += 1;
              else counts.different += 1;
              if (!isSame) acted.add(named.name);
            }
          }
        }
      }
      expect(counts).toEqual(wanted.marked);
      expect([...acted]).toEqual(wanted.acted);
    },
  );

  describe.skipIf(templates.length === 0)("with their control tokens in a real tokenizer", () => {
    let codec: TokenCodec;
    beforeAll(async () => {
      const dir = await mkdtemp(path.join(tmpdir(), "turnwright-published-"));
      const literals = new Set<string>(["<s>", "</s>"]);
      for (const named of templates) {
        const template = bind(named);
        for (const messages of [opening, [...opening, acting, toolMessage(call, "x")]]) {
          const text = tryRender(template, {
            messages,
            tools: probeTools,
            addGenerationPrompt: true,
          });
          for (const [literal] of text?.matchAll(controlShapes) ?? []) literals.add(literal);
        }
        for (const literal of learnStopLiterals(template, { pattern: controlShapes, known: [] })
          .closers)
          literals.add(literal);
      }
      await addTokens(dir, [...literals]);
      codec = await loadTokenCodec(dir);
      await rm(dir, { recursive: true });
    });

    test("a policy that writes the template's text has the template's ids in its ledger", async () => {
      const counts: Record<string, number> = {};
      for (const named of templates) {
        const renderer = await assembleRenderer({
          template: bind(named),
          codec,
          source: named.name,
          endIds: [],
          historyPolicy: "keep",
          guardPolicy: "neutralise",
          guardSystem: false,
        });
        const result = await playIdeal(renderer);
        counts[result] = (counts[result] ?? 0) + 1;
      }
      expect(counts).toEqual(wanted.played);
    });
  });
});
