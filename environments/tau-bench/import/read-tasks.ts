import type { PyDict, PyValue } from "../../../packages/python-values/src/value.ts";
import { isPyDict, isPyList } from "../../../packages/python-values/src/value.ts";
import { UsageError } from "../../../src/errors.ts";
import type { RecordMaker, RecordMakers } from "./evaluate-literal.ts";
import { evaluateLiteral } from "./evaluate-literal.ts";
import type { PythonModule } from "./python-module.ts";
import { findAssignment } from "./python-module.ts";

/**
 * Reads a task file: a list of `Task(…)` with `Action(…)` in it, assigned to `TASKS` or `TASKS_<SPLIT>`.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/<domain>/tasks_<split>.py and tau_bench/types.py (the
 * required fields).
 *
 * @throws UsageError naming file and line of an expression that is not a literal or not a task.
 */
export function readTasks(module: PythonModule, split: string): PyValue {
  const names = [`TASKS_${split.toUpperCase()}`, "TASKS"];
  for (const name of names) {
    const value = findAssignment(module, module.root, name);
    if (value === undefined) continue;
    const tasks = evaluateLiteral(module, value, records);
    if (isPyList(tasks) && tasks.every(isPyDict)) return tasks;
    throw new UsageError(`Cannot read ${module.file}: expected ${name} to be a list of tasks`);
  }
  throw new UsageError(
    `Cannot read ${module.file}: expected "${names.join('" or "')} = [Task(…)]"`,
  );
}

const records: RecordMakers = new Map([
  ["Task", checked({ user_id: "text", instruction: "text", actions: "actions", outputs: "texts" })],
  ["Action", checked({ name: "text", kwargs: "dictionary" })],
]);

type FieldKind = "text" | "texts" | "dictionary" | "actions";

/** Checks the required fields and keeps others: the original gives tasks an annotator. */
function checked(required: Readonly<Record<string, FieldKind>>): RecordMaker {
  return (fields) => {
    for (const [name, kind] of Object.entries(required)) {
      const value = fields.get(name);
      if (value === undefined) return { found: `without ${name}`, expected: `${name}=…` };
      if (!isOfKind[kind](value)) {
        return { found: `with another ${name}`, expected: `${name} to be ${expectations[kind]}` };
      }
    }
    return { value: fields };
  };
}

const isOfKind: Readonly<Record<FieldKind, (value: PyValue) => boolean>> = {
  text: (value) => typeof value === "string",
  texts: (value) => isPyList(value) && value.every((item) => typeof item === "string"),
  dictionary: isPyDict,
  actions: (value) => isPyList(value) && value.every((item) => isPyDict(item) && isAction(item)),
};

const expectations: Readonly<Record<FieldKind, string>> = {
  text: "a text",
  texts: "a list of texts",
  dictionary: "a dictionary",
  actions: "a list of Action(name=…, kwargs=…)",
};

function isAction(value: PyDict): boolean {
  return typeof value.get("name") === "string" && isPyDict(value.get("kwargs"));
}
