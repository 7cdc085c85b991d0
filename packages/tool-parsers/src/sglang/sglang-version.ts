import { defaultEngineVersion, type SglangVersion } from "../engine-version.ts";
import type { ParseContext } from "../parse-context.ts";

/** The SGLang release to reproduce; the default release for the dialect of another engine. */
export function sglangVersion({ dialect, engineVersion }: ParseContext): SglangVersion {
  const version = dialect === "sglang" ? engineVersion : defaultEngineVersion.sglang;
  return version as SglangVersion;
}
