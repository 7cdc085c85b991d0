import { expect, test } from "vitest";
import { unescapeHtml } from "./html-unescape.ts";

// The results of CPython 3.11's html.unescape().
test.each([
  ["&notit;", "¬it;"],
  ["&notin;", "∉"],
  ["&notin", "¬in"],
  ["&unknown;", "&unknown;"],
  ["&ampamp;", "&amp;"],
  ["&amp;amp;", "&amp;"],
  ["&gtx;", ">x;"],
  ["&l;", "&l;"],
  ["&#0;", "\ufffd"],
  ["&#13;", "\r"],
  ["&#128;", "€"],
  ["&#x81;", "\u0081"],
  ["&#xd800;", "\ufffd"],
  ["&#x110000;", "\ufffd"],
  ["&#1;&#11;&#127;&#xfdd0;&#x1fffe;", ""],
  ["&#12;", "\f"],
  ["&#65", "A"],
  ["&#x41g", "Ag"],
  ["&;&#;&#x;& amp;&é;", "&;&#;&#x;& amp;&é;"],
  ["&not😀;", "¬😀;"],
  ["&CounterClockwiseContourIntegral;", "∳"],
  ["&CounterClockwiseContourIntegralX;", "&CounterClockwiseContourIntegralX;"],
  ["&aacute&aacute;", "áá"],
])("%s becomes %s", (text, unescaped) => {
  expect(unescapeHtml(text)).toBe(unescaped);
});
