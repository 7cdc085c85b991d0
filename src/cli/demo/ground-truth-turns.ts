import type { TauTaskData } from "../../../environments/tau-bench/index.ts";
import type { Random } from "../../../environments/storefront/index.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import type { PyDict } from "../../../packages/python-values/src/value.ts";

/** The mistakes that a script makes on purpose. */
type Mistake = "none" | "skipped-action" | "malformed-call" | "unknown-tool" | "silent-ending";

const mistakes: readonly Mistake[] = [
  "skipped-action",
  "malformed-call",
  "unknown-tool",
  "silent-ending",
];

/**
 * The turns of an agent that plays a τ-bench task's own actions, in the grammar of the Qwen family:
 * a question, the actions, the wanted outputs. With a mistake rate above 0, some episodes skip an
 * action or keep the outputs to themselves (and are not rewarded), others stumble over a malformed
 * call or an unknown tool and recover.
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

/** Now and then two calls in one turn. */
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
