import { expect, test } from "vitest";
import { callTemplates, templateRenderer } from "./call-templates.fixture.ts";
import { createProbe } from "./show-probe.ts";
import { divideTurn, measureTurnForms, wholeTurns, type TurnForms } from "./turn-forms.ts";

const forms = (withoutReasoning: string, withReasoning = withoutReasoning): TurnForms =>
  ({ ...wholeTurns, withoutReasoning, withReasoning }) as TurnForms;

const refusing =
  "{% for m in messages %}{% if m.role == 'assistant' %}{{ raise_exception('no') }}{% endif %}{% endfor %}";

test.each([
  ["printing", callTemplates.printing, wholeTurns],
  ["firstOnly", callTemplates.firstOnly, wholeTurns],
  ["textOrCalls", callTemplates.textOrCalls, forms("text-first", "reasoned-text-first")],
  ["callsOrText", callTemplates.callsOrText, forms("text-first", "reasoned-text-first")],
  ["textOrCallsAlternating", callTemplates.textOrCallsAlternating, forms("calls-lost")],
  ["callsOrTextAlternating", callTemplates.callsOrTextAlternating, wholeTurns],
  ["textOrReasoning", callTemplates.textOrReasoning, forms("whole", "text-first")],
  ["reasoned", callTemplates.reasoned, forms("text-first", "reasoned-text-first")],
  ["callsFirst", callTemplates.callsFirst, { ...wholeTurns, putsCallsFirst: true }],
  ["refusing", refusing, wholeTurns],
] as const)("measures the forms of the template %s", async (_, source, measured) => {
  expect(await measureTurnForms(createProbe(templateRenderer(source)), false)).toEqual(measured);
});

test("a server's prompts divide only turns that the template refuses", async () => {
  const served = async (name: keyof typeof callTemplates): Promise<TurnForms> =>
    await measureTurnForms(createProbe(templateRenderer(callTemplates[name])), true);
  expect(await served("callsOrText")).toEqual(wholeTurns);
  expect(await served("textOrCallsAlternating")).toEqual(wholeTurns);
  expect(await served("textOrReasoning")).toEqual(forms("whole", "text-first"));
});

const call = { id: "c1", name: "look", argumentsText: "{}" };
const turn = {
  role: "assistant",
  content: "I look.",
  reasoning: "Hm.",
  toolCalls: [call],
} as const;

test("divideTurn() keeps all parts of a turn, in each form", () => {
  expect(divideTurn(turn, "whole")).toEqual([turn]);
  expect(divideTurn(turn, "text-first")).toEqual([
    { role: "assistant", content: "I look." },
    { role: "assistant", content: "", reasoning: "Hm.", toolCalls: [call] },
  ]);
  expect(divideTurn(turn, "reasoned-text-first")).toEqual([
    { role: "assistant", content: "I look.", reasoning: "Hm." },
    { role: "assistant", content: "", toolCalls: [call] },
  ]);
});

test("divideTurn() leaves turns without text or without calls whole, but removes white space beside calls", () => {
  const silent = { ...turn, content: "\n" };
  for (const form of ["text-first", "reasoned-text-first", "calls-lost"] as const) {
    expect(divideTurn(silent, form)).toEqual([{ ...turn, content: "" }]);
  }
  expect(divideTurn(silent, "whole")).toEqual([silent]);
  const { toolCalls: _calls, ...speaking } = turn;
  expect(divideTurn(speaking, "text-first")).toEqual([speaking]);
});
