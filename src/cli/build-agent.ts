import path from "node:path";
import type { Agent } from "../agent/agent.ts";
import { refusableNotes, repairableStatuses, type CallPolicy } from "../agent/call-policy.ts";
import { fewShotAgent, type FewShotDraw } from "../agent/few-shot-agent.ts";
import { ownTextActionPrompts } from "../agent/own-text-action-prompts.ts";
import { readFewShotExamples } from "../agent/read-few-shot-examples.ts";
import { readTextActionPrompts } from "../agent/read-text-action-prompts.ts";
import type { SplitReasoning } from "../agent/split-reasoning.ts";
import { textActionAgent } from "../agent/text-action-agent.ts";
import { toolCallingAgent, type ToolCallingOptions } from "../agent/tool-calling-agent.ts";
import { findToolUsePolicy, type ToolUsePolicy } from "../agent/tool-use-policy.ts";
import type { ReasoningMarkup } from "../agent/turn-form.ts";
import type { Environment } from "../environment/environment.ts";
import { UsageError } from "../errors.ts";
import { findReasoningParser } from "../parser/reasoning/registry.ts";
import { findToolCallParser } from "../parser/registry.ts";
import type { CapabilityCard } from "../renderer/capability-card.ts";
import type { Renderer } from "../renderer/renderer.ts";
import { findBundle } from "./environments.ts";
import { listOf, numberWithDefault, requiredText, textOf, type Settings } from "./option.ts";

/** What an agent is made for. */
interface AgentPlace {
  readonly renderer: Renderer;
  readonly environment: Environment;
}

/** The agent that the settings name, with the prompts of the environment's own benchmark. */
export async function buildAgent(settings: Settings, place: AgentPlace): Promise<Agent> {
  const strategy = requiredText(settings, "agent", "the strategy around the policy");
  requirePlayable(place.renderer.card, strategy);
  switch (strategy) {
    case "act":
    case "react":
      return await buildTextActionAgent(settings, strategy, place);
    case "few-shot":
      return await buildFewShotAgent(settings, place);
    default:
      return toolCallingAgent(toolCallingOptions(settings, place.renderer));
  }
}

/**
 * @throws UsageError where the chat template cannot express what the agent's turns are answered with:
 *   every episode would fail.
 */
function requirePlayable({ source, stopLiterals, supports }: CapabilityCard, strategy: string) {
  const cannot = (why: string): UsageError =>
    new UsageError(`Cannot play with the chat template of ${source}: ${why}`);
  if (stopLiterals.length === 0) throw cannot("no control token ends a turn of the assistant");
  if (!supports.user) throw cannot("it does not render user messages after a turn as it should");
  const needsTools = strategy === "tool-calling" || strategy === "few-shot";
  if (needsTools && !supports.tool) {
    throw cannot("it does not render tool results after a turn; --agent act and react need none");
  }
}

/**
 * The tool-use policy that the settings name.
 *
 * @throws UsageError for an unknown one.
 */
export function buildToolUsePolicy(settings: Settings): ToolUsePolicy {
  const policy = findToolUsePolicy(textOf(settings, "tool-use") ?? "many");
  if (policy === undefined) throw new UsageError("Cannot use --tool-use: unknown policy");
  return policy;
}

/** Parsers are those that the settings or the template name. */
function toolCallingOptions(settings: Settings, renderer: Renderer): ToolCallingOptions {
  const { card, codec } = renderer;
  const { parser: parserName, reasoningParser, dialect, engineVersion } = card;
  if (parserName === undefined) {
    throw new UsageError(
      "Cannot tell the tool-call parser from the chat template: name one with --parser (see `parse --list`)",
    );
  }
  const splitReasoning = buildSplitReasoning(card, { toolCallParserActive: true });
  const markup = findReasoningMarkup(reasoningParser);
  return {
    parser: findToolCallParser(parserName),
    vocabulary: codec.addedTokens.map(({ content }) => content),
    toolUsePolicy: buildToolUsePolicy(settings),
    parallelResults: card.supports.parallelTools,
    ...buildCallPolicy(settings),
    ...(dialect === undefined ? {} : { dialect }),
    ...(engineVersion === undefined ? {} : { engineVersion }),
    ...(splitReasoning === undefined ? {} : { splitReasoning }),
    ...(markup === undefined ? {} : { reasoningMarkup: markup }),
  };
}

function findReasoningMarkup(parserName: string | undefined): ReasoningMarkup | undefined {
  if (parserName === undefined || parserName === "none") return undefined;
  const { markers, closer } = findReasoningParser(parserName);
  const [opener] = markers;
  return opener === undefined || closer === undefined ? undefined : { opener, closer };
}

function buildCallPolicy(settings: Settings): CallPolicy {
  return {
    unknownTools: textOf(settings, "unknown-tools") as "refuse" | "perform",
    execute: textOf(settings, "execute-calls") as "well-formed" | "reported",
    refuse: namesOf(settings, "refuse-calls", refusableNotes),
    repair: namesOf(settings, "repair-calls", repairableStatuses),
  };
}

/** The entries of a setting that is a list of names. */
function namesOf<Name extends string>(
  settings: Settings,
  setting: string,
  names: readonly Name[],
): readonly Name[] {
  return listOf(settings, setting).map((entry) => {
    const name = names.find((known) => known === entry);
    if (name !== undefined) return name;
    throw new UsageError(`Cannot use --${setting} ${entry}: expected one of ${names.join(", ")}`);
  });
}

async function buildTextActionAgent(
  settings: Settings,
  strategy: "act" | "react",
  { renderer, environment }: AgentPlace,
): Promise<Agent> {
  const policy = buildToolUsePolicy(settings);
  if (policy.name !== "many") {
    throw new UsageError(
      `Cannot use --tool-use ${policy.name} with --agent ${strategy}: ` +
        "it calls no tools through the chat template, and takes one action a turn anyway",
    );
  }
  const file = await findBundleFile(settings, environment, () => "agent-prompts.json");
  const prompts = file === undefined ? ownTextActionPrompts : await readTextActionPrompts(file);
  const splitReasoning = buildSplitReasoning(renderer.card, { toolCallParserActive: false });
  return textActionAgent({
    strategy,
    prompt: prompts[strategy],
    invalidAction: textOf(settings, "invalid-action") as "say" | "refuse",
    ...(splitReasoning === undefined ? {} : { splitReasoning }),
  });
}

async function buildFewShotAgent(
  settings: Settings,
  { renderer, environment }: AgentPlace,
): Promise<Agent> {
  const file =
    textOf(settings, "few-shot-file") ??
    (await findBundleFile(settings, environment, (domain) => `few-shot/${domain}.jsonl`));
  if (file === undefined) {
    throw new UsageError(
      `Missing --few-shot-file: ${environment.name} brings no examples of its own`,
    );
  }
  const options = toolCallingOptions(settings, renderer);
  const examples = await readFewShotExamples(file);
  const exampleCount = numberWithDefault(settings, "few-shot-examples");
  if (exampleCount > examples.length) {
    throw new UsageError(
      `Cannot use --few-shot-examples ${exampleCount}: ${file} holds ${examples.length}`,
    );
  }
  return fewShotAgent({
    ...options,
    examples,
    exampleCount,
    draw: textOf(settings, "few-shot-draw") as FewShotDraw,
    seed: numberWithDefault(settings, "seed"),
  });
}

const tauPrefix = "tau-";

/** A file of τ-bench's bundle, where the environment is one of its domains. */
async function findBundleFile(
  settings: Settings,
  environment: Environment,
  nameFor: (domain: string) => string,
): Promise<string | undefined> {
  if (!environment.name.startsWith(tauPrefix)) return undefined;
  const dir = textOf(settings, "data") ?? (await findBundle());
  const name = nameFor(environment.name.slice(tauPrefix.length));
  return dir === undefined ? undefined : path.join(dir, name);
}

/** `none` reads the whole text. vLLM's reasoning parsers are taken to part it as SGLang's do. */
function buildSplitReasoning(
  { reasoningParser: name = "none", dialect, engineVersion }: CapabilityCard,
  options: { readonly toolCallParserActive: boolean },
): SplitReasoning | undefined {
  if (name === "none") return undefined;
  const parser = findReasoningParser(name);
  const isSglang = dialect === "sglang" && engineVersion !== undefined;
  return (text, { opened }) => {
    const { reasoning, normalText } = parser.parse(text, {
      ...options,
      forceReasoning: opened,
      ...(isSglang ? { engineVersion } : {}),
    });
    return { reasoning, rest: normalText };
  };
}
