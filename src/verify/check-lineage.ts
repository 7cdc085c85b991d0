import { turnEdges, turnRoles } from "../episode/turn-lineage.ts";
import { isObject } from "../values/is-object.ts";
import { isCount, quote, type RawRow, type Violation } from "../trajectory/violation.ts";

/** Checks the lineage of an episode's rows: one entry for each row, counted in order. */
export function checkLineage({ lineage, sampleHashes }: RawRow): Violation[] {
  if (lineage === undefined) return [];
  const rowCount = Array.isArray(sampleHashes) ? sampleHashes.length : 0;
  if (!Array.isArray(lineage) || lineage.length !== rowCount) {
    const detail = `lineage is ${quote(lineage)}, expected an entry for each of the ${rowCount} rows`;
    return [{ rule: "lineage", detail }];
  }
  const rows = lineage.filter((entry: unknown) => entry !== null);
  const first: unknown = rows[0];
  return rows.flatMap((entry: unknown, index): Violation[] => {
    const wrong = isObject(entry)
      ? faultOf(entry, { index, rowCount: rows.length, first: isObject(first) ? first : {} })
      : "is not an object";
    return wrong === undefined
      ? []
      : [{ rule: "lineage", detail: `the lineage of row ${index} ${wrong}` }];
  });
}

function faultOf(
  { role, row, rowCount, attemptTokenCount, from }: RawRow,
  wanted: { readonly index: number; readonly rowCount: number; readonly first: RawRow },
): string | undefined {
  const roles: readonly unknown[] = turnRoles;
  if (!roles.includes(role)) return `has the role ${quote(role)}`;
  if (row !== wanted.index) return `has row ${quote(row)}`;
  if (rowCount !== wanted.rowCount || wanted.rowCount < 2) {
    return `has rowCount ${quote(rowCount)}, and ${wanted.rowCount} rows have trained tokens`;
  }
  if (!isCount(attemptTokenCount) || attemptTokenCount !== wanted.first["attemptTokenCount"]) {
    return `has attemptTokenCount ${quote(attemptTokenCount)}`;
  }
  if (from === undefined) return undefined;
  const edges: readonly unknown[] = turnEdges;
  const isLink =
    isObject(from) &&
    isCount(from["row"]) &&
    from["row"] < wanted.rowCount &&
    from["row"] !== wanted.index &&
    isCount(from["turn"]) &&
    edges.includes(from["edge"]);
  return isLink ? undefined : `comes from ${quote(from)}`;
}
