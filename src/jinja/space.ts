/** What Python's `\s` matches, as a class of JavaScript's regular expressions; theirs differ. */
export const pythonSpaceClass =
  "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
