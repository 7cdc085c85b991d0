import { UsageError } from "../../python-values/src/support/index.ts";
import type { Dialect } from "./tool-call-parser.ts";

/**
 * The SGLang releases with different parsers, oldest first. A calendar month stands for the main branch of that month;
 * `next` is `2026-08` with the fixes that were merged after it. Releases before `2026-05` are exact for Qwen 2.5 and
 * for the code around all parsers; other parsers behave as in `2026-05`.
 */
export const sglangVersions = [
  "0.4.5",
  "0.4.6",
  "0.4.9",
  "0.5.2",
  "0.5.6",
  "2026-05",
  "0.5.15",
  "2026-08",
  "next",
  "0.5.23",
] as const;

/** One of `sglangVersions`. */
export type SglangVersion = (typeof sglangVersions)[number];

/** The vLLM releases of the `vllm` dialect. */
export const vllmVersions = ["0.24", "0.33"] as const;

/** The release of each dialect that is used if the caller names none. */
export const defaultEngineVersion: Readonly<Record<Dialect, string>> = {
  sglang: "2026-08",
  vllm: "0.24",
};

/**
 * Checks the name of an engine release.
 *
 * @throws UsageError with the known releases if the dialect does not have this release.
 */
export function resolveEngineVersion(dialect: Dialect, version: string | undefined): string {
  const wanted = version ?? defaultEngineVersion[dialect];
  const known: readonly string[] = dialect === "sglang" ? sglangVersions : vllmVersions;
  if (known.includes(wanted)) return wanted;
  throw new UsageError(
    `Cannot parse as ${dialect} ${wanted}: unknown engine version, expected one of ` +
      known.join(", "),
  );
}

/** True if `version` is the SGLang release `since` or a later one. */
export function isSince(version: SglangVersion, since: SglangVersion): boolean {
  return sglangVersions.indexOf(version) >= sglangVersions.indexOf(since);
}
