import { isObject } from "../values/is-object.ts";
import { isDeepStrictEqual } from "node:util";
import { quote, type Violation } from "../trajectory/violation.ts";
import { findingsIn, type Finding } from "./finding.ts";

type RawRow = Readonly<Record<string, unknown>>;

/**
 * Compares the facts in `run.json` that were found at start-up with its identity and settings: engine, model folder and
 * plan must agree. If one side lacks a value, this is not a finding.
 */
export function checkFound(manifest: RawRow): readonly Finding[] {
  const identity = objectOf(manifest["identity"]);
  const configuration = objectOf(manifest["configuration"]);
  const found = objectOf(manifest["found"]);
  const [engine, template, plan, settings] = ["engine", "template", "plan", "settings"].map(
    (name) => objectOf(found[name]),
  ) as [RawRow, RawRow, RawRow, RawRow];
  const pairs: readonly (readonly [string, unknown, string, unknown])[] = [
    ["found.engine.kind", engine["kind"], "identity.engine", identity["engine"]],
    ["found.engine.model", engine["model"], "identity.servedModel", identity["servedModel"]],
    [
      ...(["found.vocabularySize", asText(found["vocabularySize"])] as const),
      ...(["identity.vocabularySize", identity["vocabularySize"]] as const),
    ],
    [
      ...(["found.template.templateHash", template["templateHash"]] as const),
      ...(["identity.chatTemplate", identity["chatTemplate"]] as const),
    ],
    ["found.plan.split", plan["split"], "configuration.split", configuration["split"]],
    ["found.plan.seed", plan["seed"], "configuration.seed", configuration["seed"]],
    [
      "found.plan.sampleCount",
      plan["sampleCount"],
      "configuration.samples",
      configuration["samples"],
    ],
    ...Object.keys(configuration).map(
      (name) =>
        [
          ...([`found.settings.${name}`, settings[name]] as const),
          ...([`configuration.${name}`, configuration[name]] as const),
        ] as const,
    ),
  ];
  const violations = pairs.flatMap(([name, value, otherName, other]): Violation[] => {
    if (value === undefined || other === undefined || isDeepStrictEqual(value, other)) return [];
    return [
      { rule: "run", detail: `${name} is ${quote(value)}, and ${otherName} ${quote(other)}` },
    ];
  });
  return findingsIn("run.json", violations);
}

function objectOf(value: unknown): RawRow {
  return isObject(value) ? value : {};
}

function asText(value: unknown): string | undefined {
  return typeof value === "number" ? String(value) : undefined;
}
