import { getItem } from "../../../packages/python-values/src/get-item.ts";
import { iterate } from "../../../packages/python-values/src/iterate.ts";
import type { PyDict, PyValue } from "../../../packages/python-values/src/value.ts";

/** A flight as the original's searches show it: all fields but its dates, and one date's entry. */
export function flightOnDate(flight: PyDict, date: PyValue): Map<string, PyValue> {
  const shown = new Map([...flight].filter(([key]) => key !== "dates"));
  const entry = getItem(getItem(flight, "dates"), date);
  for (const key of iterate(entry)) shown.set(key as string, getItem(entry, key));
  return shown;
}

/** True if the flight can be booked on a date that it has. */
export function isAvailable(flight: PyDict, date: PyValue): boolean {
  return getItem(getItem(getItem(flight, "dates"), date), "status") === "available";
}
