import type { Exporter } from "../../export/exporter.ts";
import { exporters, type ExportTarget } from "../../export/exporters.ts";
import { ServiceError } from "../service-error.ts";
import type { TrainerForm } from "../trainer-groups.ts";

/** The query parameters of `/v1/groups` that select a trainer's form. */
export const formParameters = ["format", "policyVersion", "promptText"] as const;

/**
 * Reads the trainer's form of the groups. Absent: groups as they were delivered.
 * @throws ServiceError `bad-request` that names the parameter.
 */
export function readForm(
  parameters: Readonly<Partial<Record<string, string>>>,
): TrainerForm | undefined {
  const { format: to, policyVersion, promptText } = parameters;
  if (to === undefined) {
    const [name] = Object.keys(parameters);
    if (name === undefined) return undefined;
    throw wrong(name, "format", "it says how a trainer is given groups");
  }
  if (!isTarget(to)) throw wrongValue("format", `one of ${Object.keys(exporters).join(", ")}`);
  if (policyVersion !== undefined && !/^\d{1,15}$/.test(policyVersion)) {
    throw wrongValue("policyVersion", "a whole number");
  }
  if (promptText !== undefined && promptText !== "true" && promptText !== "false") {
    throw wrongValue("promptText", "true or false");
  }
  const exporter: Exporter = exporters[to];
  if (promptText === "true" && exporter.hasPromptText !== true) {
    throw wrong("promptText", "format=slime or miles", "only their rows have the prompt");
  }
  const version = policyVersion === undefined ? undefined : Number(policyVersion);
  return {
    to,
    ...(version !== undefined && { policyVersion: version }),
    hasPromptText: promptText === "true",
  };
}

function isTarget(name: string): name is ExportTarget {
  return Object.hasOwn(exporters, name);
}

function wrongValue(name: string, expected: string): ServiceError {
  return new ServiceError("bad-request", `"${name}" is wrong: expected ${expected}`);
}

function wrong(name: string, other: string, why: string): ServiceError {
  return new ServiceError("bad-request", `"${name}" goes with "${other}" alone: ${why}`);
}
