import { contains } from "../../../packages/python-values/src/contains.ts";
import { pythonEquals } from "../../../packages/python-values/src/equals.ts";
import { getItem } from "../../../packages/python-values/src/get-item.ts";
import { parsePythonInt } from "../../../packages/python-values/src/numbers/int-parse.ts";
import { formatInt } from "../../../packages/python-values/src/numbers/int-text.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import { lessThan } from "../../../packages/python-values/src/less-than.ts";
import { PythonError } from "../../../packages/python-values/src/python-error.ts";
import { pythonTypeName } from "../../../packages/python-values/src/type-name.ts";
import type { PyDict, PyValue } from "../../../packages/python-values/src/value.ts";
import { isPyDict, isPyList } from "../../../packages/python-values/src/value.ts";
import { defineTool } from "../tau-tool.ts";
import type { AirlineDatabase } from "./airline-database.ts";
import { flightOnDate, isAvailable } from "./flight-on-date.ts";

/**
 * Times are compared as strings, so a first leg that arrives the next day ("01:30:00+1") may connect to any later
 * departure. The second leg is then looked up on the next day, but priced on the first.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/airline/tools/search_onestop_flight.py.
 */
export const searchOnestopFlight = defineTool({
  name: "search_onestop_flight",
  className: "SearchOnestopFlight",
  parameters: ["origin", "destination", "date"],
  run({ flights }: AirlineDatabase, { origin, destination, date }) {
    const all = [...flights.entries()].map(([, flight]) => flight);
    const lastLegs = all.filter((flight) =>
      pythonEquals(getItem(flight, "destination"), destination),
    );
    const results: PyValue[] = [];
    for (const first of all) {
      if (!pythonEquals(getItem(first, "origin"), origin)) continue;
      for (const second of lastLegs) {
        if (!pythonEquals(getItem(first, "destination"), getItem(second, "origin"))) continue;
        const result = connect(first, second, date);
        if (result !== undefined) results.push(result);
      }
    }
    return stringifyPythonJson(results);
  },
});

/** Both legs as the tool shows them, or `undefined` if they do not connect. */
function connect(first: PyDict, second: PyDict, date: PyValue): PyValue | undefined {
  const arrival = getItem(first, "scheduled_arrival_time_est");
  const secondDate = contains(arrival, "+1") ? nextDay(date) : date;
  if (lessThan(getItem(second, "scheduled_departure_time_est"), arrival)) return undefined;
  if (
    !contains(getItem(first, "dates"), date) ||
    !contains(getItem(second, "dates"), secondDate) ||
    !isAvailable(first, date) ||
    !isAvailable(second, secondDate)
  ) {
    return undefined;
  }
  return [
    flightOnDate(first, date).set("date", date),
    flightOnDate(second, date).set("date", secondDate),
  ];
}

/** The day after the date's last two characters, in May 2024 and without a leading zero. */
function nextDay(date: PyValue): string {
  return `2024-05-${formatInt(parsePythonInt(lastTwoCharacters(date)) + 1n)}`;
}

/** The text that Python's `int(date[-2:])` parses. */
function lastTwoCharacters(date: PyValue): string {
  if (typeof date === "string") return Array.from(date).slice(-2).join("");
  if (isPyList(date)) {
    throw new PythonError(
      "TypeError",
      "int() argument must be a string, a bytes-like object or a real number, not 'list'",
    );
  }
  throw new PythonError(
    "TypeError",
    isPyDict(date)
      ? "unhashable type: 'slice'"
      : `'${pythonTypeName(date)}' object is not subscriptable`,
  );
}
