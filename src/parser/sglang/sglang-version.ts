import type { SglangVersion } from "../engine-version.ts";
import { defaultEngineVersion } from "../engine-version.ts";
import type { ParseContext } from "../parse-context.ts";

/** The SGLang release that is wanted; the default one where the dialect is another engine's. */
export function sglangVersion({ dialect, engineVersion }: ParseContext): SglangVersion {
  const version = dialect === "sglang" ? engineVersion : defaultEngineVersion.sglang;
  return version as SglangVersion;
}
