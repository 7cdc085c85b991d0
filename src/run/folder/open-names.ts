import type { Environment } from "../../environment/environment.ts";
import { UsageError } from "../../errors.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { OpenGroup } from "../schedule/open-group.ts";

/** The part of a redactor that finds secrets in a text. */
type KnownSecrets = Pick<Redactor, "text">;

/**
 * Checks that names contain no secret, because they are written without redaction.
 *
 * @throws UsageError if the name of the environment or of a split contains a known secret.
 */
export function requireOpenNames(
  environment: Pick<Environment, "name" | "splits">,
  redactor: KnownSecrets | undefined,
): void {
  if (redactor === undefined) return;
  const { name, splits } = environment;
  const isInName = holdsSecret(name, redactor);
  if (!isInName && !Object.keys(splits).some((split) => holdsSecret(split, redactor))) return;
  const what = isInName ? "the environment's name" : "the name of a split";
  throw new UsageError(
    `Cannot start a run of ${name}: a known key or password is a part of ${what}, and would be taken out of all ` +
      "that says it; give another key, such as a longer one, where the engine takes any",
  );
}

const warned = new WeakSet<KnownSecrets>();

/** Warns once a run if the id of a group or a task contains a known secret. */
export function warnOfNames(
  { groupId, task }: Pick<OpenGroup, "groupId" | "task">,
  redactor: KnownSecrets | undefined,
): void {
  if (redactor === undefined || warned.has(redactor)) return;
  if (!holdsSecret(groupId, redactor) && !holdsSecret(task.id, redactor)) return;
  warned.add(redactor);
  process.emitWarning(
    `A known key or password is a part of the id of task ${task.index} of "${task.split}", or of its group's: ids ` +
      "are written as they are; give another key or other ids if it is a secret",
  );
}

function holdsSecret(text: string, redactor: KnownSecrets): boolean {
  return redactor.text(text) !== text;
}
