import { UsageError } from "../errors.ts";

/** How many calls a turn may make, and how the policy is told. */
export interface ToolUsePolicy {
  /** Such as `many` or `one`. */
  readonly name: string;
  /**
   * `one`: the first call is executed, each further one is refused with an error. `first`: the
   * further ones are left out of the conversation instead, as if they had not been made.
   */
  readonly callsPerTurn: "one" | "first" | "many";
  /** What the policy is told; absent: nothing beyond the environment's own policy text. */
  readonly instruction?: string;
  /**
   * Where the instruction goes: after the system message, or in place of `sentence` in the chat
   * template's own text.
   */
  readonly placement: "system" | { readonly sentence: string };
}

const oneCallInstruction =
  "Make at most one tool call in each turn. Only a tool call changes anything: describing an action " +
  "does not perform it. Tell the user that something is done only after the tool has returned " +
  "and its result confirms it.";

/** The sentence of Qwen's chat templates that leaves the number of calls open. */
const qwenSentence = "You may call one or more functions to assist with the user query.";

/**
 * The named policies: what `--tool-use` takes. `first` is what τ-bench's own agents do, who neither
 * tell the model that there is a limit nor that it went beyond it.
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

/** The system message with the policy's instruction, where that is its place. */
export function appendInstruction(systemText: string, policy: ToolUsePolicy): string {
  if (policy.instruction === undefined || policy.placement !== "system") return systemText;
  return `${systemText}\n\n${policy.instruction}`;
}

/**
 * The chat template's source with the policy's instruction in its place, where that is in the
 * template.
 *
 * @throws UsageError where the sentence to replace is not in the template: an instruction that
 *   silently never reaches the model would change what is trained.
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
