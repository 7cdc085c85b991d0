// An import() that vitest does not see: what it brings are the modules as Node loads them.
module.exports = (url) => import(url);
