import type { ColumnPart, ColumnParts } from "../../columns/column-part.ts";
import type { ColumnName } from "../../columns/column-specs.ts";
import type { Episode } from "../../episode/episode.ts";
import type { Inputs } from "../../episode/inputs/input.ts";
import { namedParts, recordedParts, type NamedPart } from "../../run/columns/named-parts.ts";

/** Collects the parts of side columns that the lines of an attempt name. Each part occurs once. */
export class NamedColumns {
  /** The hashes of parts that the run has, because it sent the recording that names them. */
  readonly #sent = new Set<string>();
  readonly #parts = new Map<string, NamedPart>();

  /** @param sent - The recording from which the attempt resumes. */
  constructor(sent: readonly Inputs[] = []) {
    for (const { part } of sent.flatMap(recordedParts)) this.#sent.add(part.hash);
  }

  /** Adds the parts of recorded generations. */
  addInputs(inputs: Inputs): void {
    for (const named of recordedParts(inputs)) this.#add(named);
  }

  /** Adds the parts of an episode's rows. */
  addRows({ segments }: Pick<Episode, "segments">): void {
    for (const { columns } of segments) for (const named of namedParts(columns)) this.#add(named);
  }

  #add({ name, part }: NamedPart): void {
    if (this.#sent.has(part.hash)) return;
    const key = `${name} ${part.hash}`;
    if (!this.#parts.has(key)) this.#parts.set(key, { name, part });
  }

  /** Returns the parts. `undefined` if no line names a part. */
  get parts(): ColumnParts | undefined {
    const columns: Partial<Record<ColumnName, ColumnPart[]>> = {};
    for (const { name, part } of this.#parts.values()) (columns[name] ??= []).push(part);
    return this.#parts.size === 0 ? undefined : columns;
  }
}
