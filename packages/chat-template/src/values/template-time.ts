const months = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];
const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/**
 * Python's `datetime.strftime()` in the C locale and the machine's time zone, for a naive time.
 *
 * **Source:** the Python documentation, "strftime() and strptime() Format Codes", with glibc's flags.
 */
export function formatTime(time: Date, format: string): string {
  return format.replace(/%([-_0^#]?)([^])/gu, (whole: string, flag: string, code: string) => {
    const text = formatDirective(time, code);
    return text === undefined ? whole : applyFlag(text, flag);
  });
}

function applyFlag(text: string, flag: string): string {
  if (flag === "-") return text.replace(/^[0 ]+(?=.)/, "");
  if (flag === "_") return text.replace(/^0+(?=.)/, (zeros) => " ".repeat(zeros.length));
  if (flag === "0") return text.replace(/^ +/, (spaces) => "0".repeat(spaces.length));
  return flag === "^" || flag === "#" ? text.toUpperCase() : text;
}

function formatDirective(time: Date, code: string): string | undefined {
  const composed = compositions.get(code);
  if (composed !== undefined) return formatTime(time, composed);
  return directives.get(code)?.(time);
}

const compositions: ReadonlyMap<string, string> = new Map([
  ["c", "%a %b %e %H:%M:%S %Y"],
  ["D", "%m/%d/%y"],
  ["F", "%Y-%m-%d"],
  ["R", "%H:%M"],
  ["r", "%I:%M:%S %p"],
  ["T", "%H:%M:%S"],
  ["X", "%H:%M:%S"],
  ["x", "%m/%d/%y"],
]);

type Directive = (time: Date) => string;

const directives: ReadonlyMap<string, Directive> = new Map<string, Directive>([
  ["%", () => "%"],
  ["A", (time) => weekday(time)],
  ["a", (time) => weekday(time).slice(0, 3)],
  ["B", (time) => month(time)],
  ["b", (time) => month(time).slice(0, 3)],
  ["C", (time) => digits(Math.floor(time.getFullYear() / 100), 2)],
  ["d", (time) => digits(time.getDate(), 2)],
  ["e", (time) => String(time.getDate()).padStart(2, " ")],
  ["f", (time) => digits(time.getMilliseconds() * 1000, 6)],
  ["G", (time) => String(isoWeek(time).year)],
  ["g", (time) => digits(isoWeek(time).year % 100, 2)],
  ["H", (time) => digits(time.getHours(), 2)],
  ["h", (time) => month(time).slice(0, 3)],
  ["I", (time) => digits(time.getHours() % 12 || 12, 2)],
  ["j", (time) => digits(dayOfYear(time), 3)],
  ["k", (time) => String(time.getHours()).padStart(2, " ")],
  ["l", (time) => String(time.getHours() % 12 || 12).padStart(2, " ")],
  ["M", (time) => digits(time.getMinutes(), 2)],
  ["m", (time) => digits(time.getMonth() + 1, 2)],
  ["n", () => "\n"],
  ["P", (time) => (time.getHours() < 12 ? "am" : "pm")],
  ["p", (time) => (time.getHours() < 12 ? "AM" : "PM")],
  ["S", (time) => digits(time.getSeconds(), 2)],
  ["s", (time) => String(Math.floor(time.getTime() / 1000))],
  ["t", () => "\t"],
  ["U", (time) => digits(Math.floor((dayOfYear(time) + 6 - time.getDay()) / 7), 2)],
  ["u", (time) => String(time.getDay() || 7)],
  ["V", (time) => digits(isoWeek(time).week, 2)],
  ["W", (time) => digits(Math.floor((dayOfYear(time) + 6 - ((time.getDay() + 6) % 7)) / 7), 2)],
  ["w", (time) => String(time.getDay())],
  ["Y", (time) => String(time.getFullYear())],
  ["y", (time) => digits(time.getFullYear() % 100, 2)],
  ["Z", () => ""],
  ["z", () => ""],
]);

function digits(value: number, width: number): string {
  return String(value).padStart(width, "0");
}

function month(time: Date): string {
  return months[time.getMonth()] ?? "";
}

function weekday(time: Date): string {
  return weekdays[time.getDay()] ?? "";
}

/** The day of the year; 1 is the first of January. */
function dayOfYear(time: Date): number {
  const day = Date.UTC(time.getFullYear(), time.getMonth(), time.getDate());
  return (day - Date.UTC(time.getFullYear(), 0, 1)) / 86_400_000 + 1;
}

/** The ISO 8601 week, which belongs to the year of its Thursday. */
function isoWeek(time: Date): { readonly year: number; readonly week: number } {
  const thursday = new Date(time.getFullYear(), time.getMonth(), time.getDate());
  thursday.setDate(thursday.getDate() + 4 - (thursday.getDay() || 7));
  return { year: thursday.getFullYear(), week: Math.ceil(dayOfYear(thursday) / 7) };
}
