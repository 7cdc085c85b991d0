import { UsageError } from "../errors.ts";

/** The number of calls that a turn may make, and the instruction about it. */
export interface ToolUsePolicy {
  /** The policy's name, such as `many` or `one`. */
  readonly name: string;
  /**
   * `one`: the first call is executed and each further one is refused with an error. `first`:
   * further calls are removed from the conversation.
   */
  readonly callsPerTurn: "one" | "first" | "many";
  /** The instruction for the policy. Absent: only the environment's policy text. */
  readonly instruction?: string;
  /**
   * The place of the instruction: after the system message, or instead of `sentence` in the chat
   * template.
   */
  readonly placement: "system" | { readonly sentence: string };
}

const oneCallInstruction =
  "Make at most one tool call in each turn. Only a tool call changes anything: describing an action " +
  "does not perform it. Tell the user that something is done only after the tool has returned " +
  "and its result confirms it.";

/** The sentence of Qwen's chat templates that permits any number of calls. */
const qwenSentence = "You may call one or more functions to assist with the user query.";

/**
 * The policies that `--tool-use` accepts. `first` behaves as τ-bench's own agents, which neither
 * state the limit nor report a violation.
 */
export const toolUsePolicies = {
  many: { name: "many", callsPerTurn: "many", placement: "system" },
  first: { name: "first", callsPerTurn: "first", placement: "system" },
  one: {
    name: "one",
    callsPerTurn: "one",
    instruction: oneCallInstruction,
    placement: "system",
  },
  "one-in-template": {
    name: "one-in-template",
    callsPerTurn: "one",
    instruction: oneCallInstruction,
    placement: { sentence: qwenSentence },
  },
} as const satisfies Readonly<Record<string, ToolUsePolicy>>;

/** Appends the policy's instruction to the system message if it belongs there. */
export function appendInstruction(systemText: string, policy: ToolUsePolicy): string {
  if (policy.instruction === undefined || policy.placement !== "system") return systemText;
  return `${systemText}\n\n${policy.instruction}`;
}

/**
 * Inserts the policy's instruction into the chat template's source if it belongs there.
 *
 * @throws UsageError if the template lacks the sentence to replace. Otherwise the instruction would
 *   silently never reach the model.
 */
export function instructTemplate(templateSource: string, policy: ToolUsePolicy): string {
  if (policy.instruction === undefined || policy.placement === "system") return templateSource;
  const { sentence } = policy.placement;
  if (!templateSource.includes(sentence)) {
    throw new UsageError(
      `Cannot place the tool-use policy "${policy.name}": the chat template does not contain ` +
        `"${sentence}"; use a policy that goes into the system message (--tool-use one)`,
    );
  }
  return templateSource.replaceAll(sentence, () => policy.instruction ?? "");
}
