import { createHash } from "node:crypto";
import { chooseParser, type ParserSettings } from "../../parser/choose-parser.ts";
import { resolveEngineVersion } from "../../parser/engine-version.ts";
import { findToolCallParser } from "../../parser/registry.ts";
import { toPlainJson, type PyDict } from "../../python/value.ts";
import type { CapabilityCard } from "./capability-card.ts";
import type { TemplateProfile } from "./classify-template.ts";
import { readOwnCalls } from "../read-own-calls.ts";

/** What a card says beside what was measured of the template. */
interface CardFacts {
  readonly source: string;
  readonly stopIds: readonly number[];
  /** Parsers in the place of those that fit the template where they are named. */
  readonly parsers?: ParserSettings;
  /** Added tokens of the model, where they are known. */
  readonly vocabulary?: readonly string[];
  /** How the model says that its turns are written, for the parsers that read by it. */
  readonly responseTemplate?: PyDict;
  /** Template variables that the user has set. */
  readonly variables?: PyDict;
  /** What the user has chosen otherwise than it was found. */
  readonly overrides: readonly string[];
}

/**
 * Writes down what was measured of a template.
 *
 * @throws UsageError for a parser that there is not.
 */
export function buildCard(profile: TemplateProfile, facts: CardFacts): CapabilityCard {
  const { source, stopIds, parsers, vocabulary, variables = new Map(), overrides } = facts;
  const { template, stops, delta, edits, keepThinking } = profile;
  const { toolCallParser, reasoningParser } = {
    ...chooseParser(template.source, parsers?.dialect ?? parsers?.servedBy),
    ...parsers,
  };
  const release = findRelease(toolCallParser, parsers);
  const ownCalls =
    toolCallParser === undefined
      ? undefined
      : readOwnCalls(template, {
          parser: toolCallParser,
          reasoningParser: reasoningParser === "none" ? undefined : reasoningParser,
          ...release,
          stops: stops.sampled,
          ...(vocabulary !== undefined && { vocabulary }),
          ...(facts.responseTemplate !== undefined && { responseTemplate: facts.responseTemplate }),
        });
  return {
    source,
    templateHash: createHash("sha256").update(template.source, "utf8").digest("hex"),
    stopLiterals: stops.sampled,
    stopIds,
    ...(stops.openers.length !== 0 && { stopOpeners: stops.openers }),
    history: edits,
    ...(keepThinking !== undefined && {
      keepThinking: {
        variable: keepThinking.variable,
        value: keepThinking.value,
        isSet: profile.setsKeepThinking,
      },
    }),
    transformers: template.transformers,
    showsTools: profile.showsTools,
    opensReasoning: profile.opensReasoning,
    deltaBase: delta.plan.base,
    deltaNeedsTools: delta.plan.needsTools,
    supports: delta.supports,
    ...(toolCallParser !== undefined && { parser: toolCallParser }),
    ...(reasoningParser !== undefined && { reasoningParser }),
    ...release,
    ...(ownCalls !== undefined && { ownCalls: ownCalls.type }),
    ...(variables.size !== 0 && { variables: plainOf(variables) }),
    ...(overrides.length !== 0 && { overrides }),
    warnings: [
      ...profile.warnings,
      ...(ownCalls?.type === "misread"
        ? [
            `The parser ${toolCallParser} does not read a call as this template writes it ` +
              `(${ownCalls.detail}): calls that the policy writes so come back to it as errors`,
          ]
        : []),
    ],
  };
}

/** Whose behaviour the parser reproduces, and of which release. */
function findRelease(
  parserName: string | undefined,
  { dialect, servedBy = "sglang", engineVersion }: ParserSettings = {},
): Pick<CapabilityCard, "dialect" | "engineVersion"> {
  if (parserName === undefined) return {};
  const { dialects } = findToolCallParser(parserName);
  const found = dialect ?? dialects.find((known) => known === servedBy) ?? dialects[0] ?? "sglang";
  return { dialect: found, engineVersion: resolveEngineVersion(found, engineVersion) };
}

function plainOf(variables: PyDict): NonNullable<CapabilityCard["variables"]> {
  return Object.fromEntries([...variables].map(([name, value]) => [name, toPlainJson(value)]));
}

/** What a choice of parsers is called among a card's overrides. */
export function namesOfChoices(parsers: ParserSettings = {}): readonly string[] {
  return [
    ...(parsers.toolCallParser === undefined ? [] : ["parser"]),
    ...(parsers.reasoningParser === undefined ? [] : ["reasoningParser"]),
    ...(parsers.dialect === undefined ? [] : ["dialect"]),
    ...(parsers.engineVersion === undefined ? [] : ["engineVersion"]),
  ];
}
