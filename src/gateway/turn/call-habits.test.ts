import { expect, test } from "vitest";
import { RolloutError } from "../../errors.ts";
import { measureCallHabits, strictestHabits } from "./call-habits.ts";
import { callTemplates, templateRenderer } from "./call-templates.fixture.ts";
import { wholeTurns } from "./turn-forms.ts";

const usual = {
  takesAnyId: true,
  numbersCalls: false,
  namesByIds: false,
  looksUpIds: false,
  showsAllCalls: true,
  dropsCalls: false,
  takesTextArguments: true,
  turnForms: wholeTurns,
};

const lost = {
  ...wholeTurns,
  withoutReasoning: "calls-lost",
  withReasoning: "calls-lost",
} as const;

test.each([
  ["printing", usual],
  ["naming", { ...usual, namesByIds: true }],
  ["dropping", { ...strictestHabits, dropsCalls: true, turnForms: lost }],
  ["numbering", { ...usual, numbersCalls: true }],
  ["nine", { ...usual, takesAnyId: false }],
  ["lookingUp", { ...usual, looksUpIds: true }],
  ["firstOnly", { ...usual, showsAllCalls: false }],
  ["single", { ...usual, showsAllCalls: false }],
  ["members", { ...usual, takesTextArguments: false }],
  ["membersIfAny", { ...usual, takesTextArguments: false }],
] as const)("measures the rules of a template that is %s", async (name, habits) => {
  expect(await measureCallHabits(templateRenderer(callTemplates[name]))).toEqual(habits);
});

test("a template without calls gets ids that every template accepts", async () => {
  const deaf = "{% for m in messages %}{{ m.content }}{% endfor %}";
  const habits = { ...strictestHabits, dropsCalls: true, turnForms: lost };
  expect(await measureCallHabits(templateRenderer(deaf))).toEqual(habits);
});

test("a template that refuses calls drops none", async () => {
  const refusing =
    "{% for m in messages %}{% if m.tool_calls %}{{ raise_exception('no calls') }}{% endif %}{% endfor %}";
  expect(await measureCallHabits(templateRenderer(refusing))).toEqual(strictestHabits);
});

test("a failed tokenizer is not a property of the template", async () => {
  const failure = new RolloutError("internal/tokenizer", "Cannot use the tokenizer");
  const renderer = {
    ...templateRenderer(callTemplates.printing),
    prompt: async () => await Promise.reject(failure),
  };
  await expect(measureCallHabits(renderer)).rejects.toBe(failure);
});
