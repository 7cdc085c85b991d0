import type { Engine, Generation } from "../../engine/engine.ts";
import { passOn } from "./engine-watch.ts";
import { readVersion } from "../disk/read-version.ts";

/** What was announced of the policy. */
interface AnnouncedPolicy {
  /** Absent before the first announcement. */
  readonly version: number | undefined;
  /** Whether all tokens carry it; otherwise those for which the engine names no whole number. */
  readonly overrules: boolean;
}

/**
 * An engine whose tokens carry the version that was announced before they were sampled, where there is one.
 *
 * @param announced - Asked when a call begins: where the version changes before its end, the older one counts.
 */
export function markVersions(engine: Engine, announced: () => AnnouncedPolicy): Engine {
  return {
    ...passOn(engine),
    generate: async (request, options) => {
      const { version, overrules } = announced();
      const generation = await engine.generate(request, options);
      return version === undefined
        ? generation
        : withVersion(generation, { name: String(version), overrules });
    },
  };
}

/**
 * A generation whose tokens carry a version. An engine may be anyone's: whoever asked says what is wrong with
 * what has no pieces.
 */
export function withVersion(
  generation: Generation,
  { name, overrules }: { readonly name: string; readonly overrules: boolean },
): Generation {
  const { pieces } = (generation ?? {}) as Partial<Generation>;
  if (!Array.isArray(pieces)) return generation;
  const marked = pieces.map((piece: Generation["pieces"][number]) => {
    const named = piece?.policyVersion;
    if (typeof named !== "string" || (!overrules && readVersion(named) !== undefined)) return piece;
    return { ...piece, policyVersion: name };
  });
  return { ...generation, pieces: marked };
}
