import { UsageError } from "../errors.ts";

/**
 * Behaviours of τ-bench's user simulators that can be corrected, by name. Without repairs, the
 * simulators behave as the original, so that numbers are comparable with published ones.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/user.py.
 */
const userRepairs = {
  "cut-line": "every strategy: a line cut at the token limit is sent; repaired, it is a failure",
  "think-block":
    "every strategy: thoughts in tags such as <think> are sent; repaired, they are left out",
  "first-line-stop":
    "every strategy: a stop marker in the first line is sent; repaired, the line is requested again, " +
    "and a marker again is a failure",
  "stop-spelling":
    "every strategy: only ###STOP### in exactly this spelling ends the conversation; repaired, " +
    "### Stop ### and ##STOP## do, too",
  "thought-leak":
    "react: the thought and the label of the response are sent too; repaired, only the response is, " +
    "without a later thought",
  "stop-in-thought":
    "react: a stop marker in the thought ends the conversation; repaired, only one in the response",
  labels:
    "react, reflection: a label that occurs twice, or in other letters or bold, is a failure; " +
    "repaired, the text after the last one counts",
  "draft-object":
    "verify: the judge is shown the draft as a printed Python object; repaired, as its text",
  "judge-roles":
    "verify, reflection: the judge sees the customer's lines labelled Agent and the agent's " +
    "Customer; repaired, the right way round",
  "judge-word":
    'verify, reflection: any judgement that contains "true", as "untrue" does, accepts; repaired, ' +
    "its first word must be true",
  "forgotten-line":
    "verify: a line that is sent although the judge rejected it is not remembered; repaired, it is",
  "kept-drafts":
    "reflection: rejected drafts stay in memory and the first is sent in the end; repaired, only " +
    "the line that was sent is remembered, and it is the last draft",
} as const;

/** The name of a correction. See `userRepairs`. */
type UserRepair = keyof typeof userRepairs;

/** The behaviours to correct: all, or the named ones. */
export type UserRepairChoice = "all" | readonly UserRepair[];

/**
 * Reads a choice of repairs: `all`, `none`, or names.
 *
 * @throws UsageError for an unknown name.
 */
export function readUserRepairs(choice: string | readonly string[]): UserRepairChoice {
  if (choice === "all") return "all";
  if (choice === "none") return [];
  const names = typeof choice === "string" ? choice.split(",").map((name) => name.trim()) : choice;
  return names.map((name) => {
    if (Object.hasOwn(userRepairs, name)) return name as UserRepair;
    throw new UsageError(
      `Cannot repair ${JSON.stringify(name)}: no such behaviour, expected all, none, or some of ` +
        Object.keys(userRepairs).join(", "),
    );
  });
}

/** True if a behaviour is corrected. */
export function isRepaired(choice: UserRepairChoice, name: UserRepair): boolean {
  return choice === "all" || choice.includes(name);
}
