import { describe, expect, test } from "vitest";
import { compileChatTemplate } from "../../../packages/chat-template/src/chat-template.ts";
import { toPyValue } from "../../../packages/python-values/src/value.ts";
import { toolsFromOpenAi, type ToolDefinition } from "../../message.ts";
import { bindTemplate, type BoundTemplate } from "../../renderer/bound-template.ts";
import {
  assistantMessage,
  toolMessage,
  type ProbeCall,
} from "../../renderer/capability/probe-messages.ts";
import { createProber } from "../../renderer/capability/prober.ts";
import {
  readOwnTemplates,
  readPublishedTemplates,
  type NamedTemplate,
} from "../../renderer/chat-templates.fixture.ts";
import { toTemplateMessage, toTemplateTools } from "../../renderer/openai-messages.ts";
import { renderPrompt } from "../../renderer/render-prompt.ts";
import type { Renderer } from "../../renderer/renderer.ts";
import { sampleTemplates } from "../../renderer/sample-templates.fixture.ts";
import { adaptCallArguments } from "../../renderer/text-arguments.ts";
import { createCharacterRenderer } from "../../testing/character-renderer.ts";
import { ClientError } from "../client-error.ts";
import type { ClientMessage } from "../conversation.ts";
import { callTemplates } from "./call-templates.fixture.ts";
import { PromptBuilder } from "./prompt-builder.ts";

/** The parts of an assistant turn. */
interface Parts {
  readonly hasText: boolean;
  readonly hasReasoning: boolean;
  readonly callCount: number;
  /** True if the conversation continues after the turn and its results. */
  readonly isEarlier: boolean;
}

const calls = ["ARGONE", "ARGTWO"].map((at, index) => {
  return { id: `call0000${index}`, name: "look", argumentsText: JSON.stringify({ at }) };
});

const tools = toolsFromOpenAi(
  toPyValue([
    {
      type: "function",
      function: {
        name: "look",
        description: "Looks.",
        parameters: {
          type: "object",
          properties: { at: { type: "string", description: "place" } },
        },
      },
    },
  ]),
  "tools",
);

function conversation({ hasText, hasReasoning, callCount, isEarlier }: Parts): ClientMessage[] {
  const said = calls.slice(0, callCount);
  const user = (content: string): ClientMessage => ({ role: "user", content });
  const speak = (content: string): ClientMessage => {
    return { role: "assistant", content, calls: [], marks: [] };
  };
  const results = said.map(({ id }, index): ClientMessage => {
    return { role: "tool", callId: id, content: ["RESONE", "RESTWO"][index]! };
  });
  const turn: ClientMessage = {
    role: "assistant",
    content: hasText ? "SAIDTEXT" : "",
    ...(hasReasoning && { reasoning: "THOUGHT" }),
    calls: said,
    marks: [],
  };
  const answer = callCount === 0 ? [user("Well?")] : results;
  const rest = callCount === 0 ? [] : [speak("Answer."), user("Thanks.")];
  return [user("Go."), turn, ...answer, ...(isEarlier ? rest : [])];
}

/** Returns the words of the parts that a prompt must show, in each order that is right. */
function rightOrders({ hasText, hasReasoning, callCount }: Parts, notes: ReadonlySet<string>) {
  const text = hasText && !notes.has("text-not-shown") ? ["SAIDTEXT"] : [];
  const thought = hasReasoning && !notes.has("reasoning-not-shown") ? ["THOUGHT"] : [];
  const together = ["ARGONE", "ARGTWO", "RESONE", "RESTWO"];
  const acted =
    callCount === 2
      ? [together, ["ARGONE", "RESONE", "ARGTWO", "RESTWO"]]
      : [callCount === 1 ? ["ARGONE", "RESONE"] : []];
  // The reasoning may stand with the calls, after a text that has a turn of its own.
  return acted.flatMap((each) => [
    [...thought, ...text, ...each].join(" "),
    [...text, ...thought, ...each].join(" "),
  ]);
}

const word = /SAIDTEXT|THOUGHT|ARGONE|ARGTWO|RESONE|RESTWO/g;

function bind({ source }: NamedTemplate): BoundTemplate {
  const tokens = new Map([
    ["bos_token", "<s>"],
    ["eos_token", "</s>"],
  ]);
  return adaptCallArguments(bindTemplate(compileChatTemplate(source), tokens, new Date(0)));
}

/** Returns a renderer of texts only, and the texts that it rendered. */
function openRenderer(template: BoundTemplate): { renderer: Renderer; prompts: string[] } {
  const prompts: string[] = [];
  const renderer = createCharacterRenderer();
  const { opening, show } = createProber(template);
  const call: ProbeCall = { id: "call00001", name: "find_parcel", arguments: { parcel_id: "1" } };
  const acted = [assistantMessage({ content: "", calls: [call] }), toolMessage(call, "RESONE")];
  const tool = show([...opening, ...acted], true)?.includes("RESONE") !== false;
  const card = { ...renderer.card, supports: { ...renderer.card.supports, tool } };
  const prompt: Renderer["prompt"] = async ({ messages, tools: given }) => {
    const shaped = { messages: messages.map(toTemplateMessage), tools: toTemplateTools(given) };
    const text = renderPrompt(template, { ...shaped, addGenerationPrompt: true }, "a test");
    prompts.push(text);
    return { text, ids: [1] };
  };
  return { renderer: { ...renderer, card, prompt }, prompts };
}

/** Returns the outcome of each conversation: `shown`, the notes, `refused`, or the words of a wrong prompt. */
async function play(
  named: NamedTemplate,
  turns: readonly Parts[],
): Promise<readonly { readonly outcome: string; readonly isWrong: boolean }[]> {
  const { renderer, prompts } = openRenderer(bind(named));
  const builder = new PromptBuilder(renderer);
  const begin = async (messages: ClientMessage[], given: readonly ToolDefinition[]) => {
    try {
      return (await builder.begin(messages, given)).notes;
    } catch (error) {
      if (error instanceof ClientError && error.kind === "invalid") return undefined;
      throw error;
    }
  };
  const outcomes = [];
  for (const parts of turns) {
    const messages = conversation(parts);
    // Some templates refuse tools.
    const noted = (await begin(messages, tools)) ?? (await begin(messages, []));
    if (noted === undefined) {
      outcomes.push({ outcome: "refused", isWrong: false });
      continue;
    }
    const notes = new Set<string>(noted);
    const shown = [...prompts.at(-1)!.matchAll(word)].map(([each]) => each);
    const orders = rightOrders(parts, notes);
    const isRight = notes.has("text-after-calls")
      ? shown.toSorted().join(" ") === orders[0]!.split(" ").toSorted().join(" ")
      : orders.includes(shown.join(" "));
    outcomes.push({
      outcome: isRight ? [...notes].join(" ") || "shown" : `${named.name}: ${shown.join(" ")}`,
      isWrong: !isRight,
    });
  }
  return outcomes;
}

const allTurns: readonly Parts[] = [false, true].flatMap((isEarlier) =>
  [0, 1, 2].flatMap((callCount) =>
    [false, true].flatMap((hasReasoning) =>
      [false, true]
        .filter((hasText) => hasText || callCount > 0)
        .map((hasText) => ({ hasText, hasReasoning, callCount, isEarlier })),
    ),
  ),
);

const small = Object.entries({ ...callTemplates, ...sampleTemplates }).map(
  ([name, source]): NamedTemplate => ({ name, source }),
);

describe.each([
  [
    "small templates",
    small,
    allTurns,
    {
      shown: 246,
      refused: 56,
      "text-not-shown": 4,
      "text-after-calls": 4,
      "reasoning-not-shown": 202,
      "reasoning-not-shown text-not-shown": 4,
      "reasoning-not-shown text-after-calls": 4,
    },
  ],
  [
    "templates in this repository",
    readOwnTemplates(),
    allTurns,
    {
      shown: 154,
      refused: 32,
      "text-not-shown": 4,
      "reasoning-not-shown": 106,
      "reasoning-not-shown text-not-shown": 4,
    },
  ],
  [
    "published templates",
    readPublishedTemplates(),
    // A few turns only, to save time.
    allTurns.filter(
      ({ hasText, callCount, isEarlier }) => hasText && callCount === 1 && !isEarlier,
    ),
    {
      shown: 158,
      refused: 66,
      "text-not-shown": 4,
      "text-after-calls": 12,
      "reasoning-not-shown": 64,
      "reasoning-not-shown text-not-shown": 4,
      "reasoning-not-shown text-after-calls": 2,
    },
  ],
] as const)("%s", (_, templates, turns, counts) => {
  test.skipIf(templates.length === 0)(
    "show each part of a turn once and in order, or refuse it, or note what is missing",
    async () => {
      const found: Record<string, number> = {};
      const wrong: string[] = [];
      for (const named of templates) {
        for (const { outcome, isWrong } of await play(named, turns)) {
          if (isWrong) wrong.push(outcome);
          else found[outcome] = (found[outcome] ?? 0) + 1;
        }
      }
      expect(wrong).toEqual([]);
      expect(found).toEqual(counts);
    },
  );
});
