import type { ColumnPart } from "../../columns/column-part.ts";
import { mapParts } from "../../columns/column-store.ts";
import type { Engine, Generation } from "../../engine/engine.ts";
import { passOn } from "../../engine/pass-on.ts";
import { readVersion } from "../disk/read-version.ts";

/** The policy version that was announced. */
interface AnnouncedPolicy {
  /** The version. `undefined` before the first announcement. */
  readonly version: number | undefined;
  /** True if all tokens get the announced version; false if only tokens without a whole-number version get it. */
  readonly overrules: boolean;
}

/**
 * Wraps an engine so that its tokens carry the announced version, if there is one.
 *
 * @param announced - Returns the announced policy. Called when a call starts, so the version at the call's start
 *   counts.
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
 * Marks the tokens of a generation with a version. Returns a generation without pieces unchanged; the caller reports
 * that fault.
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
  const { columns } = generation;
  const mark = (part: ColumnPart): ColumnPart =>
    !overrules && readVersion(part.policyVersion) !== undefined
      ? part
      : { ...part, policyVersion: name };
  return {
    ...generation,
    pieces: marked,
    ...(columns !== undefined && { columns: mapParts(columns, mark) }),
  };
}
