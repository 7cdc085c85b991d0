import {
  completeSettings,
  count,
  text,
  type GivenSettings,
  type Setting,
} from "../../../composition/config/setting.ts";
import {
  userSettings,
  readUserConfig,
  type UserConfig,
} from "../../../composition/config/user-config.ts";
import { isTauName } from "../../../composition/environment/environment-names.ts";
import { UsageError } from "../../../errors.ts";

/** The settings of `env play --me`: the task, and the user to talk to. */
export const mySettings = [
  { name: "task", kind: count(0), value: "n", help: "index of the task", default: 0 },
  {
    name: "split",
    kind: text,
    help: "split of the task (default: test, if there is one)",
  },
  { name: "seed", kind: count(0), value: "n", help: "seed of the user", default: 0 },
  ...userSettings,
] as const satisfies readonly Setting[];

/** The task and the user of a conversation. */
export interface MyChoices {
  readonly taskIndex: number;
  /** The split of the task. If absent, `test` if it exists, otherwise the first split. */
  readonly split?: string;
  readonly seed: number;
  readonly user: UserConfig;
}

/**
 * Reads the settings of `env play --me`.
 *
 * @throws UsageError if a setting of the user is missing, or the user is a person at the same terminal.
 */
export function readMyChoices(environment: string, given: GivenSettings): MyChoices {
  const values = completeSettings<(typeof mySettings)[number]>(mySettings, given);
  const isAssumed = values.user === undefined && !isTauName(environment);
  if (values.user === "human") {
    throw new UsageError(
      "Cannot use --user human with --me: both would read the same terminal; expected llm, scripted or another user",
    );
  }
  const named = isAssumed ? { ...values, user: "scripted" as const } : values;
  const user = readUserConfig(named);
  return {
    taskIndex: values.task,
    ...(values.split !== undefined && { split: values.split }),
    seed: values.seed,
    user: { ...user, ...(isAssumed && { isAssumed }) },
  };
}
