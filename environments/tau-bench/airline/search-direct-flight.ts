import { contains } from "../../../packages/python-values/src/contains.ts";
import { pythonEquals } from "../../../packages/python-values/src/equals.ts";
import { getItem } from "../../../packages/python-values/src/get-item.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import type { PyValue } from "../../../packages/python-values/src/value.ts";
import { defineTool } from "../tau-tool.ts";
import type { AirlineDatabase } from "./airline-database.ts";
import { flightOnDate, isAvailable } from "./flight-on-date.ts";

/** **Source:** sierra-research/tau-bench, tau_bench/envs/airline/tools/search_direct_flight.py. */
export const searchDirectFlight = defineTool({
  name: "search_direct_flight",
  className: "SearchDirectFlight",
  parameters: ["origin", "destination", "date"],
  run({ flights }: AirlineDatabase, { origin, destination, date }) {
    const results: PyValue[] = [];
    for (const [, flight] of flights.entries()) {
      if (
        pythonEquals(getItem(flight, "origin"), origin) &&
        pythonEquals(getItem(flight, "destination"), destination) &&
        contains(getItem(flight, "dates"), date) &&
        isAvailable(flight, date)
      ) {
        results.push(flightOnDate(flight, date));
      }
    }
    return stringifyPythonJson(results);
  },
});
