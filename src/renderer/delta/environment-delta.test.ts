import { describe, expect, test } from "vitest";
import { sampleTemplates } from "../sample-templates.fixture.ts";
import { readOwnTemplates, readPublishedTemplates } from "../chat-templates.fixture.ts";
import { RolloutError } from "../../errors.ts";
import type { PyDict } from "../../../packages/python-values/src/value.ts";
import { toPyValue } from "../../../packages/python-values/src/value.ts";
import type { BoundTemplate } from "../bound-template.ts";
import { bindTemplate, tryRender } from "../bound-template.ts";
import { compileChatTemplate } from "../../../packages/chat-template/src/chat-template.ts";
import type { DeltaPlan, TurnChange } from "./environment-delta.ts";
import { renderDeltaText } from "./environment-delta.ts";
import { messageTexts, occurInOrder } from "../message-texts.ts";
import { measureDelta } from "./measure-delta.ts";
import type { ProbeCall } from "../capability/probe-messages.ts";
import {
  assistantMessage,
  probeTools,
  systemMessage,
  toolMessage,
  userMessage,
} from "../capability/probe-messages.ts";
import { controlShapes, learnStopLiterals } from "./stop-literals.ts";

function bind(source: string): BoundTemplate {
  const variables = toPyValue({ bos_token: "<s>", eos_token: "</s>" }) as PyDict;
  return bindTemplate(compileChatTemplate(source), variables, new Date(2026, 10, 21, 8));
}

function search(index: number, place: string): ProbeCall {
  return { id: `call0000${index}`, name: "find_parcel", arguments: { parcel_id: place } };
}

const call = search(1, "A1");
const both = [search(2, "B2"), search(3, "C3")] as const;
const opening = [systemMessage("Be a helpful carrier."), userMessage("Where is my parcel?")];
const searching = assistantMessage({ content: "", calls: [call] });
const moving = toolMessage(call, "moving");
const said = (content: string, reasoning?: string): PyDict =>
  assistantMessage({ content, ...(reasoning !== undefined && { reasoning }) });

function scenario(
  history: readonly PyDict[],
  assistant: PyDict,
  environment: readonly PyDict[],
): TurnChange {
  return { history, assistant, environment, tools: probeTools };
}

/** The ways in which a turn can be answered, early and late, with and without reasoning. */
const scenarios: Readonly<Record<string, TurnChange>> = {
  userAfterText: scenario(opening, said("Which parcel?"), [userMessage("A1 please")]),
  toolAfterCall: scenario(opening, searching, [moving]),
  parallelTools: scenario(opening, assistantMessage({ content: "", calls: both }), [
    toolMessage(both[0], "lost"),
    toolMessage(both[1], "found"),
  ]),
  userAfterToolCycle: scenario([...opening, searching, moving], said("It is moving."), [
    userMessage("thanks"),
  ]),
  toolInLaterCycle: scenario(
    [...opening, searching, moving, said("It is moving."), userMessage("And B2?")],
    assistantMessage({ content: "", calls: [search(4, "B2")] }),
    [toolMessage(search(4, "B2"), "waiting")],
  ),
  userAfterReasoning: scenario(opening, said("Which one?", "I need its number."), [
    userMessage("A1"),
  ]),
  toolAfterReasoning: scenario(
    opening,
    assistantMessage({ content: "", reasoning: "Let me look.", calls: [call] }),
    [moving],
  ),
  userAfterReasonedCycle: scenario(
    [...opening, assistantMessage({ content: "", reasoning: "Look.", calls: [call] }), moving],
    said("It is moving.", "Tell them."),
    [userMessage("thanks")],
  ),
};

/** The reason why a delta differs from the end of the complete conversation's rendering, or undefined. */
function findFault(
  template: BoundTemplate,
  whole: string,
  change: TurnChange,
  delta: string,
): string | undefined {
  if (!whole.endsWith(delta)) return "is not the end of the conversation";
  if (occurInOrder(delta, change.environment.map(messageTexts)) !== undefined)
    return "lacks a text";
  const before = whole.slice(0, whole.length - delta.length);
  const content = change.assistant.get("content") as string;
  if (content === "") return undefined;
  const at = before.lastIndexOf(content);
  if (at < 0) return "begins within the sampled turn";
  // The text between the words and the delta must be part of the turn that the policy samples.
  const rest = before.slice(at + content.length);
  const alone = tryRender(template, {
    messages: [...change.history, change.assistant],
    tools: change.tools,
    addGenerationPrompt: false,
  });
  const ending = alone?.slice(alone.lastIndexOf(content) + content.length) ?? "";
  return rest.trim() === "" || ending.startsWith(rest) ? undefined : "begins too late";
}

describe("renderDeltaText()", () => {
  const plan: DeltaPlan = { base: "short", needsTools: false, closers: ["<|im_end|>"] };
  const { clearing, deaf, plain } = sampleTemplates;
  const render = (source: string, change: TurnChange, closers: readonly string[] = plan.closers) =>
    renderDeltaText(bind(source), { ...plan, closers }, change);

  test("begins with the close of the turn and ends with the opener of the next", () => {
    expect(render(clearing, scenario([], said("Which?"), [userMessage("A1")]))).toBe(
      "<|im_end|>\n<|im_start|>user\nA1<|im_end|>\n<|im_start|>assistant\n",
    );
  });

  test("renders all answers of a turn together", () => {
    const calling = assistantMessage({ content: "", calls: both });
    const answers = [toolMessage(both[0], "lost"), userMessage("Hurry!")];
    expect(render(clearing, scenario([], calling, answers))).toBe(
      "<|im_end|>\n<|im_start|>tool\nlost<|im_end|>\n<|im_start|>user\nHurry!<|im_end|>\n" +
        "<|im_start|>assistant\n",
    );
  });

  test("is unaffected by answers that contain the placeholder's word", () => {
    const answer = userMessage("qzkvx0xvkzq qzkvx1xvkzq");
    expect(render(clearing, scenario([], said("Which?"), [answer]))).toBe(
      "<|im_end|>\n<|im_start|>user\nqzkvx0xvkzq qzkvx1xvkzq<|im_end|>\n<|im_start|>assistant\n",
    );
  });

  test("finds answers that the template trims or quotes", () => {
    const quoting = clearing.replace(
      "m.content + '<|im_end|>",
      "m.content|trim|tojson + '<|im_end|>",
    );
    const answer = userMessage(' say "hi"\nü ');
    expect(render(quoting, scenario([], said("Which?"), [answer]))).toContain('say \\"hi\\"\\nü');
  });

  test.each([
    ["the template drops an answer", deaf, ["<|end|>"], /the text of answer 1 \(role "tool"\)/],
    ["no token closes the turn", plain, [], /no control token closes the assistant turn/],
    ["the template refuses", "{{ raise_exception('Not so.') }}", ["<|end|>"], /Not so\.$/],
    ["the turn is not shown", "{{ messages[-1].content }}<|end|>", ["<|end|>"], /does not appear/],
  ])("refuses if %s", (_name, source, closers, message) => {
    const change = scenario([], searching, [moving]);
    expect(() => render(source, change, closers)).toThrow(message);
    expect(() => render(source, change, closers)).toThrow(RolloutError);
  });
});

describe.each([
  [
    "templates in this repository",
    readOwnTemplates(),
    {
      cells: { templates: 15, renderable: 118, right: 114, refused: 4 },
      refusing: ["deaf"],
      plans: { short: 15, full: 0, tools: 2, same: 114 },
    },
  ],
  [
    "published templates",
    readPublishedTemplates(),
    {
      cells: { templates: 155, renderable: 1097, right: 1055, refused: 42 },
      refusing: [
        "cohere2", // prints nothing of tool results
        "cohere2_training",
        "idefics3", // prints nothing of contents that are text
        "idefics3_training",
        "llama-cpp-rwkv-world", // closes turns with white space
        "microsoft-Phi-3.5-mini-instruct", // prints nothing of tool results
        "phi3",
        "phi3_5_training",
        "phi3_training",
        "tool_chat_template_glm4", // closes turns with nothing
      ],
      plans: { short: 143, full: 12, tools: 12, same: 1055 },
    },
  ],
])("environment delta over %s", (_, templates, wanted) => {
  test.skipIf(templates.length === 0)(
    "is right or refused in every renderable cell, and never silently wrong",
    () => {
      const counts = { templates: templates.length, renderable: 0, right: 0, refused: 0 };
      const refusing = new Set<string>();
      const faults: string[] = [];
      for (const { name: file, source } of templates) {
        const template = bind(source);
        const { closers } = learnStopLiterals(template, { pattern: controlShapes, known: [] });
        const plan: DeltaPlan = { base: "full", needsTools: true, closers };
        for (const [name, change] of Object.entries(scenarios)) {
          const messages = [...change.history, change.assistant, ...change.environment];
          const { tools } = change;
          const whole = tryRender(template, { messages, tools, addGenerationPrompt: true });
          if (whole === undefined) continue;
          counts.renderable += 1;
          try {
            const fault = findFault(
              template,
              whole,
              change,
              renderDeltaText(template, plan, change),
            );
            if (fault === undefined) counts.right += 1;
            else faults.push(`${file} ${name}: ${fault}`);
          } catch (error) {
            if (!(error instanceof RolloutError)) throw error;
            counts.refused += 1;
            refusing.add(file.replace(/^\w+?__/, ""));
          }
        }
      }
      expect(faults).toEqual([]);
      expect(counts).toEqual(wanted.cells);
      expect([...refusing].sort()).toEqual(wanted.refusing);
    },
  );

  test.skipIf(templates.length === 0)(
    "is the same from the measured base as from the complete history",
    () => {
      const counts = { short: 0, full: 0, tools: 0, same: 0 };
      const different: string[] = [];
      for (const { name: file, source } of templates) {
        const template = bind(source);
        const { closers } = learnStopLiterals(template, { pattern: controlShapes, known: [] });
        const { plan, supports } = measureDelta(template, closers);
        counts[plan.base] += 1;
        if (plan.needsTools) counts.tools += 1;
        for (const [name, change] of Object.entries(scenarios)) {
          const tool = change.environment[0]?.get("role") === "tool";
          const kind = change.environment.length > 1 ? "parallelTools" : tool ? "tool" : "user";
          const messages = [...change.history, change.assistant, ...change.environment];
          const rendered = tryRender(template, {
            messages,
            tools: change.tools,
            addGenerationPrompt: true,
          });
          if (!supports[kind] || rendered === undefined) continue;
          const whole = renderDeltaText(
            template,
            { base: "full", needsTools: true, closers },
            change,
          );
          if (renderDeltaText(template, plan, change) === whole) counts.same += 1;
          else different.push(`${file} ${name}`);
        }
      }
      expect(different).toEqual([]);
      expect(counts).toEqual(wanted.plans);
    },
  );
});
