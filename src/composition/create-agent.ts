import path from "node:path";
import type { Agent } from "../agent/agent.ts";
import { createChatToolAgent } from "../agent/chat-tool-agent.ts";
import { withFewShots } from "../agent/few-shot-agent.ts";
import { ownTextActionPrompts } from "../agent/own-text-action-prompts.ts";
import { readFewShotExamples } from "../agent/read-few-shot-examples.ts";
import { readTextActionPrompts } from "../agent/read-text-action-prompts.ts";
import type { SplitReasoning } from "../agent/split-reasoning.ts";
import { createTextActionAgent } from "../agent/text-action-agent.ts";
import { createToolCallingAgent, type ToolCallingOptions } from "../agent/tool-calling-agent.ts";
import type { ReasoningMarkup } from "../agent/turn-form.ts";
import type { Environment } from "../environment/environment.ts";
import { UsageError } from "../errors.ts";
import { findReasoningParser } from "../../packages/tool-parsers/src/reasoning/registry.ts";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import type { CapabilityCard } from "../renderer/capability/capability-card.ts";
import type { Renderer } from "../renderer/renderer.ts";
import { whyUnplayable } from "../renderer/capability/why-unplayable.ts";
import type { AgentConfig, ForeignAgentConfig } from "./config/agent-config.ts";
import { isTauName } from "./environment/environment-names.ts";
import { findBundle } from "./environment/environments.ts";

/** The parts that an agent needs: renderer, environment and data. */
interface AgentPlace {
  /** The renderer. Absent if the engine returns messages. */
  readonly renderer?: Renderer;
  readonly environment: Environment;
  /** The folder with the environment's data. Absent: the usual places of a bundle. */
  readonly dataDir?: string;
}

type ToolCallingConfig = Extract<AgentConfig, { readonly calls: unknown }>;

/**
 * Creates a configuration's agent, with the prompts of the environment's benchmark.
 * @throws UsageError if the chat template or the environment lacks something that the agent needs.
 */
export async function createAgent(
  config: Exclude<AgentConfig, ForeignAgentConfig>,
  place: AgentPlace,
): Promise<Agent> {
  if (place.renderer !== undefined) requirePlayable(place.renderer.card, config.strategy);
  switch (config.strategy) {
    case "act":
    case "react":
      return await openTextActionAgent(config, place);
    case "few-shot":
      return await openFewShotAgent(config, place);
    case "tool-calling":
      return createCallingAgent(config, place);
  }
}

/** Creates the agent that calls tools: from sampled text, or from messages. */
function createCallingAgent(
  config: ToolCallingConfig,
  { renderer }: Pick<AgentPlace, "renderer">,
): Agent {
  return renderer === undefined
    ? createChatToolAgent({ toolUsePolicy: config.toolUse, ...config.calls })
    : createToolCallingAgent(toolCallingOptions(config, renderer));
}

/**
 * Refuses a chat template with which no episode could be played.
 *
 * @throws UsageError if the chat template cannot render the observations after the agent's turns.
 *   Every episode would fail.
 */
function requirePlayable(card: CapabilityCard, strategy: AgentConfig["strategy"]): void {
  const needsTools = strategy === "tool-calling" || strategy === "few-shot";
  const why =
    whyUnplayable(card) ??
    (needsTools && !card.supports.tool
      ? "it does not render tool results after a turn; --agent act and react need none"
      : undefined);
  if (why !== undefined) {
    throw new UsageError(`Cannot play with the chat template of ${card.source}: ${why}`);
  }
}

/** Returns the options of a tool-calling agent, with the parsers that the settings name or the template implies. */
function toolCallingOptions(
  { toolUse, calls }: ToolCallingConfig,
  renderer: Renderer,
): ToolCallingOptions {
  const { card, codec, responseTemplate } = renderer;
  const { parser: parserName, reasoningParser, dialect, engineVersion } = card;
  if (parserName === undefined) {
    throw new UsageError(
      "Cannot tell the tool-call parser from the chat template: name one with --parser (see `parse --list`)",
    );
  }
  const splitReasoning = buildSplitReasoning(renderer, { toolCallParserActive: true });
  const markup = findReasoningMarkup(reasoningParser);
  return {
    parser: findToolCallParser(parserName),
    vocabulary: codec.addedTokens.map(({ content }) => content),
    toolUsePolicy: toolUse,
    parallelResults: card.supports.parallelTools,
    ...calls,
    ...(responseTemplate !== undefined && { responseTemplate }),
    ...(dialect !== undefined && { dialect }),
    ...(engineVersion !== undefined && { engineVersion }),
    ...(splitReasoning !== undefined && { splitReasoning }),
    ...(markup !== undefined && { reasoningMarkup: markup }),
  };
}

function findReasoningMarkup(parserName: string | undefined): ReasoningMarkup | undefined {
  if (parserName === undefined || parserName === "none") return undefined;
  const { markers, closer } = findReasoningParser(parserName);
  const [opener] = markers;
  return opener === undefined || closer === undefined ? undefined : { opener, closer };
}

async function openTextActionAgent(
  { strategy, invalidAction }: Extract<AgentConfig, { readonly invalidAction: unknown }>,
  place: AgentPlace,
): Promise<Agent> {
  const file = await findBundleFile(place, () => "agent-prompts.json");
  const prompts = file === undefined ? ownTextActionPrompts : await readTextActionPrompts(file);
  const { renderer } = place;
  const splitReasoning = renderer && buildSplitReasoning(renderer, { toolCallParserActive: false });
  return createTextActionAgent({
    strategy,
    prompt: prompts[strategy],
    invalidAction,
    ...(splitReasoning !== undefined && { splitReasoning }),
  });
}

async function openFewShotAgent(
  config: Extract<AgentConfig, { readonly strategy: "few-shot" }>,
  place: AgentPlace,
): Promise<Agent> {
  const { count: exampleCount, file: ownFile, draw, seed } = config.examples;
  const file = ownFile ?? (await findBundleFile(place, (domain) => `few-shot/${domain}.jsonl`));
  if (file === undefined) {
    throw new UsageError(
      `Missing --few-shot-file: ${place.environment.name} brings no examples of its own`,
    );
  }
  const agent = createCallingAgent(config, place);
  const examples = await readFewShotExamples(file);
  if (exampleCount > examples.length) {
    throw new UsageError(
      `Cannot use --few-shot-examples ${exampleCount}: ${file} holds ${examples.length}`,
    );
  }
  return withFewShots(agent, { examples, exampleCount, draw, seed });
}

/** Returns a file of τ-bench's bundle; `undefined` if the environment is not one of its domains. */
async function findBundleFile(
  { environment: { name }, dataDir }: AgentPlace,
  nameFor: (domain: string) => string,
): Promise<string | undefined> {
  if (!isTauName(name)) return undefined;
  const dir = dataDir ?? (await findBundle());
  return dir === undefined ? undefined : path.join(dir, nameFor(name.slice("tau-".length)));
}

/**
 * Returns a function that splits reasoning from the text. `none` treats the complete text as the
 * reply. Most of vLLM's reasoning parsers are assumed to split like SGLang's.
 */
function buildSplitReasoning(
  { card, responseTemplate }: Renderer,
  options: { readonly toolCallParserActive: boolean },
): SplitReasoning | undefined {
  const { reasoningParser: name = "none", dialect, engineVersion } = card;
  if (name === "none") return undefined;
  const parser = findReasoningParser(name);
  const isSglang = dialect === "sglang" && engineVersion !== undefined;
  return (text, { opened }) => {
    const { reasoning, normalText } = parser.parse(text, {
      ...options,
      forceReasoning: opened,
      ...(dialect !== undefined && { dialect }),
      ...(isSglang && { engineVersion }),
      ...(responseTemplate !== undefined && { responseTemplate }),
    });
    return { reasoning, rest: normalText };
  };
}
