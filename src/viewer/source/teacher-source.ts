import { hash } from "node:crypto";
import type { ColumnPart } from "../../columns/column-part.ts";
import { parseJsonText } from "../../json/parse-json.ts";
import type { OpenColumns } from "../../run/columns/open-columns.ts";
import type { LineRange } from "../../run/disk/line-ranges.ts";
import { storedFiles } from "../../run/gzip/stored-files.ts";
import {
  parseTeacherRow,
  rowKey,
  teacherFiles,
  type TeacherRow,
} from "../../teacher/teacher-record.ts";
import { hashRow } from "../../trajectory/hash-row.ts";
import type { TeacherToken } from "../model/teacher-token.ts";
import { partAt } from "../model/side-columns.ts";
import { LineFollower } from "./line-follower.ts";
import { readIdRow } from "./read-token-column.ts";
import type { RowSource } from "./row-source.ts";
import type { RunIndex } from "./run-index.ts";

/** The maximum length of a line of a teacher's file, in bytes. */
const lineLength = 8 * 1024;

/** The address of a training row. */
interface RowAddress {
  readonly rolloutId: string;
  /** Index of the row among those of the rollout. */
  readonly row: number;
}

/**
 * Reads the columns of a run's teachers for single tokens. Keeps the positions of lines in memory, and no bytes of
 * columns.
 */
export class TeacherSource {
  readonly #rows: Pick<RowSource, "spell">;
  readonly #columns: OpenColumns;
  readonly #indexes = new Map<RunIndex, Map<string, TeacherIndex>>();
  /** The hash of the row that was read last. */
  #last: { readonly key: string; readonly isSame: (sampleHash: string) => boolean } | undefined;

  constructor(rows: Pick<RowSource, "spell">, columns: OpenColumns) {
    this.#rows = rows;
    this.#columns = columns;
  }

  /**
   * Returns the columns of each teacher that scored a token, in the order of their names.
   *
   * @throws UsageError if the bytes are not there, or are not those of rows.
   */
  async token(run: RunIndex, address: RowAddress, token: number): Promise<readonly TeacherToken[]> {
    const found: TeacherToken[] = [];
    for (const name of run.facts.teachers ?? []) {
      const scored = await this.#indexOf(run, name).find(address);
      const part = scored && partAt(partsOf(scored.columns.teacherLogprobs), token);
      if (part === undefined) continue;
      const isSame = await this.#comparesRow(run, address);
      found.push({
        name,
        logprob: await this.#logprobAt(run, part, token),
        ...(await this.#topAt(run, scored!.columns.teacherTop, token)),
        ...(!isSame(scored!.sampleHash) && { isOutdated: true }),
      });
    }
    return found;
  }

  async #logprobAt(run: RunIndex, part: ColumnPart, token: number): Promise<number> {
    const start = (token - part.from) * 4;
    const read = await this.#columns.of(run.root, run).read(part, { start, end: start + 4 });
    return new DataView(read.buffer, read.byteOffset).getFloat32(0, true);
  }

  async #topAt(
    run: RunIndex,
    own: ColumnPart | undefined,
    token: number,
  ): Promise<Pick<TeacherToken, "top">> {
    const part = partAt(partsOf(own), token);
    if (part === undefined) return {};
    const row = token - part.from;
    const read = await readIdRow(this.#columns.of(run.root, run), part, { hasLogprobs: true, row });
    const pieces = await this.#rows.spell(run, read.ids);
    const { policyVersion } = part;
    return { top: { kind: "tokens", ...read, ...(pieces && { pieces }), policyVersion } };
  }

  /** Returns a function that compares the row's hash with that of a row that was scored. */
  async #comparesRow(
    run: RunIndex,
    { rolloutId, row }: RowAddress,
  ): Promise<(sampleHash: string) => boolean> {
    const { generation } = run.facts;
    const key = JSON.stringify([run.key, generation, rolloutId, row, run.rowSizes(rolloutId)]);
    if (this.#last?.key !== key) {
      const line = (await run.rowLine(rolloutId, row)) ?? Buffer.alloc(0);
      const ofLine = hash("sha256", line, "hex");
      const isSame = (sampleHash: string): boolean =>
        sampleHash === ofLine || sampleHash === hashRow(parseJsonText(line.toString("utf8")));
      this.#last = { key, isSame };
    }
    return this.#last.isSame;
  }

  #indexOf(run: RunIndex, name: string): TeacherIndex {
    const byName = this.#indexes.get(run) ?? new Map<string, TeacherIndex>();
    this.#indexes.set(run, byName);
    const known = byName.get(name) ?? new TeacherIndex(teacherFiles(run.root, name).rows);
    byName.set(name, known);
    return known;
  }
}

/** The positions of a teacher's lines, by row. The last line of a row counts. */
class TeacherIndex {
  readonly #lines: LineFollower;
  #places = new Map<string, LineRange>();

  constructor(file: string) {
    this.#lines = new LineFollower(file, {
      files: storedFiles,
      headLength: lineLength,
      onLine: ({ head, start, end }) => {
        const row = parseTeacherRow(head.toString("utf8"));
        if (row !== undefined) this.#places.set(rowKey(row), { start, end });
      },
      onReset: () => (this.#places = new Map()),
    });
  }

  async find({ rolloutId, row }: RowAddress): Promise<TeacherRow | undefined> {
    await this.#lines.read();
    const place = this.#places.get(rowKey({ rolloutId, segment: row }));
    return place && parseTeacherRow((await this.#lines.lineAt(place)).toString("utf8"));
  }
}

function partsOf(part: ColumnPart | undefined): readonly ColumnPart[] {
  return part === undefined ? [] : [part];
}
