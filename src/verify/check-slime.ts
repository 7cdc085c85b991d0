import { isObject } from "../values/is-object.ts";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Files } from "../run/disk/files.ts";
import { LineReader, readPlacedLines, type LinePlace } from "../run/disk/placed-lines.ts";
import { slimeFile } from "../run/folder/folder-results.ts";
import { readSlimeGroups, type SlimeAttempt } from "../run/slime/slime-file.ts";
import { toSlimeGroup, type SlimeSample } from "../run/slime/slime.ts";
import { parseLine } from "../trajectory/verify-file.ts";
import { nameOf, quote, type RawRow, type Violation } from "../trajectory/violation.ts";
import { findingsIn, type Finding } from "./finding.ts";

/** The facts that decide which slime rows a run must have. */
interface SlimeCircumstances {
  /** True if the run writes slime rows. */
  readonly isAsked: boolean;
  readonly isFinished: boolean;
  /** The number of scored attempts in a complete group. */
  readonly size: number;
  /** True if an attempt's own files are sound. Its slime row can be checked only then. */
  readonly isSound: (rolloutId: string) => boolean;
}

type Found = (Violation & { readonly line?: number })[];

/**
 * Compares a run's slime file, row by row and in order, with the rows that follow from its episodes
 * and samples. A run that has not finished needs no rows yet.
 * @returns the number of rows, if the file exists, and the findings.
 */
export async function checkSlime(
  { files, dir }: { readonly files: Files; readonly dir: string },
  attempts: readonly SlimeAttempt[],
  { isAsked, isFinished, size, isSound }: SlimeCircumstances,
): Promise<{ readonly rows?: number; readonly findings: readonly Finding[] }> {
  const file = path.join(dir, slimeFile);
  const isThere = (await files.facts(file)) !== undefined;
  const found: Found = [];
  if (isThere !== isAsked && (isFinished || isThere)) {
    const detail = isThere
      ? "the file is there, and run.json does not ask for it"
      : "the file is not there, and run.json asks for it";
    found.push({ rule: "slime", detail });
  }
  if (!isThere) return { findings: findingsIn(slimeFile, found) };
  const actual = await indexRows({ files, file }, found);
  await using reader = await LineReader.open(files, file);
  let previousLine = 0;
  const samplesFile = path.join(dir, "samples.jsonl");
  const episodesFile = path.join(dir, "episodes.jsonl");
  const sources = { files, samplesFile, episodesFile, size };
  for await (const members of readSlimeGroups(attempts, sources)) {
    const broken = members.filter(({ rolloutId }) => !isSound(rolloutId));
    if (broken.length > 0) {
      for (const { rolloutId } of members) actual.places.delete(rolloutId);
      continue;
    }
    const group = toSlimeGroup(members);
    for (const [rolloutId, rows] of rowsByAttempt("rows" in group ? group.rows : [])) {
      const places = actual.places.get(rolloutId) ?? [];
      actual.places.delete(rolloutId);
      if (places.length === 0) {
        if (isFinished) found.push({ rule: "slime", detail: `${rolloutId} is not there` });
        continue;
      }
      for (const { line } of places.slice(rows.length)) {
        const detail =
          rows.length === 1
            ? `${rolloutId} is there twice`
            : `${rolloutId} has more than its ${rows.length} rows`;
        found.push({ line, rule: "slime", detail });
      }
      if (places.length < rows.length) {
        const detail = `${rolloutId} has ${places.length} of its ${rows.length} rows`;
        found.push({ line: places.at(-1)!.line, rule: "slime", detail });
      }
      for (const [index, place] of places.slice(0, rows.length).entries()) {
        const { line } = place;
        if (line < previousLine) {
          const detail = `${rolloutId} stands out of the plan's order`;
          found.push({ line, rule: "slime", detail });
        }
        previousLine = Math.max(previousLine, line);
        found.push(...compareRows(parseLine(await reader.read(place)), rows[index]!, line));
      }
    }
  }
  for (const [rolloutId, places] of actual.places) {
    for (const { line } of places) {
      const detail = `${rolloutId} is of no group that slime can be given`;
      found.push({ line, rule: "slime", detail });
    }
  }
  return { rows: actual.count, findings: findingsIn(slimeFile, found) };
}

/** Returns the rows of each attempt, in order. */
function rowsByAttempt(rows: readonly SlimeSample[]): ReadonlyMap<string, readonly SlimeSample[]> {
  const byId = new Map<string, SlimeSample[]>();
  for (const row of rows) {
    const rolloutId = nameOf(row.metadata["rollout"]);
    byId.set(rolloutId, [...(byId.get(rolloutId) ?? []), row]);
  }
  return byId;
}

async function indexRows(
  { files, file }: { readonly files: Files; readonly file: string },
  found: Found,
) {
  const places = new Map<string, LinePlace[]>();
  let count = 0;
  for await (const { text, place } of readPlacedLines(files, file)) {
    count += 1;
    const row = parseLine(text);
    if (!isObject(row)) {
      const detail = "the line is not a JSON object (a torn line?)";
      found.push({ line: place.line, rule: "json", detail });
      continue;
    }
    const { rollout } = isObject(row["metadata"]) ? row["metadata"] : {};
    const known = places.get(nameOf(rollout)) ?? [];
    places.set(nameOf(rollout), [...known, place]);
  }
  return { places, count };
}

function compareRows(actual: unknown, expected: SlimeSample, line: number): Found {
  const row = actual as RawRow;
  const wanted = JSON.parse(JSON.stringify(expected)) as RawRow;
  const names = new Set([...Object.keys(row), ...Object.keys(wanted)]);
  return [...names]
    .filter((name) => !isDeepStrictEqual(row[name], wanted[name]))
    .map((name) => {
      const detail = `${name} is ${quote(row[name])}, expected ${quote(wanted[name])} by the sample`;
      return { line, rule: "slime", detail };
    });
}
