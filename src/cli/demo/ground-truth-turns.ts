import type { TauTaskData } from "../../../environments/tau-bench/index.ts";
import type { Random } from "../../../environments/storefront/index.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import type { PyDict } from "../../../packages/python-values/src/value.ts";

/** The mistakes that a script can make on purpose. */
type Mistake = "none" | "skipped-action" | "malformed-call" | "unknown-tool" | "silent-ending";

const mistakes: readonly Mistake[] = [
  "skipped-action",
  "malformed-call",
  "unknown-tool",
  "silent-ending",
];

/**
 * Returns the turns of an agent that performs a τ-bench task's expected actions, in the syntax of
 * the Qwen family: a question, the actions, the expected outputs. With a mistake rate above 0, some
 * episodes omit an action or an output and get no reward. Others have a malformed call or an
 * unknown tool, and recover.
 */
export function groundTruthTurns(
  task: TauTaskData,
  { random, mistakeRate }: { readonly random: Random; readonly mistakeRate: number },
): readonly string[] {
  const mistake = random.chance(mistakeRate) ? random.pick(mistakes) : "none";
  const actions = task.actions.filter(({ name }) => name !== "transfer_to_human_agents");
  const kept = mistake === "skipped-action" ? actions.slice(0, -1) : actions;
  const calls = kept.map(({ name, kwargs }) => callText(name, kwargs));
  if (mistake === "malformed-call") calls.splice(1, 0, '<tool_call>\n{"name": \n</tool_call>');
  if (mistake === "unknown-tool") calls.splice(1, 0, callText("look_up_everything", new Map()));
  const said =
    mistake === "silent-ending" ? "" : task.outputs.map((output) => ` ${output}`).join(",");
  return [
    "I can help you with that. Shall I go ahead?",
    ...pairUp(calls, random).map((text, index) => think(index, random) + text),
    `Everything is done.${said === "" ? "" : ` For your information:${said}.`} Goodbye!`,
  ];
}

function callText(name: string, kwargs: PyDict): string {
  const call = new Map<string, PyDict | string>([
    ["name", name],
    ["arguments", kwargs],
  ]);
  return `<tool_call>\n${stringifyPythonJson(call, { ensureAscii: false })}\n</tool_call>`;
}

/** Puts some calls in pairs, so that some turns have two calls. */
function pairUp(calls: readonly string[], random: Random): string[] {
  const turns: string[] = [];
  for (let index = 0; index < calls.length; index++) {
    const next = calls[index + 1];
    if (next !== undefined && random.chance(0.15)) {
      turns.push(`${calls[index]}\n${next}`);
      index++;
    } else {
      turns.push(calls[index]!);
    }
  }
  return turns;
}

function think(index: number, random: Random): string {
  return random.chance(0.5) ? `<think>\nStep ${index + 1} of what was asked.\n</think>\n\n` : "";
}
