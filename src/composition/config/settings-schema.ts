import type { PlainJson } from "../../../packages/python-values/src/value.ts";
import type { Setting, SettingKind } from "./setting.ts";

/** A JSON Schema of a configuration file, for editors: one property for each setting. JSON-able. */
interface SettingsSchema {
  readonly $schema: string;
  readonly title: string;
  readonly type: "object";
  readonly properties: Readonly<Record<string, Readonly<Record<string, PlainJson>>>>;
  readonly additionalProperties: false;
}

/** The key of a configuration file with the path of its schema. It is not a setting. */
export const schemaKey = "$schema";

/** Returns a JSON Schema of the configuration files for a table of settings. */
export function settingsSchema(table: readonly Setting[]): SettingsSchema {
  const properties = table.map(({ name, kind, help, default: fallback }) => [
    name,
    {
      description: help,
      ...schemaOf(kind),
      ...(fallback !== undefined && { default: fallback }),
    },
  ]);
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "turnwright's configuration file: the names of the flags, without the dashes",
    type: "object",
    properties: {
      [schemaKey]: { type: "string" },
      ...(Object.fromEntries(properties) as SettingsSchema["properties"]),
    },
    additionalProperties: false,
  };
}

function schemaOf(kind: SettingKind): Readonly<Record<string, PlainJson>> {
  switch (kind.type) {
    case "text":
      return { type: "string" };
    case "choice":
      return { enum: kind.choices };
    case "flag":
      return { type: "boolean" };
    case "list":
      return { type: "array", items: kind.choices ? { enum: kind.choices } : { type: "string" } };
    case "number": {
      const number = {
        type: kind.whole === true ? "integer" : "number",
        ...(kind.min !== -Infinity && { minimum: kind.min }),
        ...(kind.max !== Infinity && { maximum: kind.max }),
      };
      return kind.word === undefined ? number : { anyOf: [number, { enum: [kind.word] }] };
    }
  }
}
