CREATE TABLE patrons (
  id INTEGER PRIMARY KEY,
  email TEXT NOT NULL UNIQUE CHECK (email = lower(trim(email))),
  name TEXT NOT NULL,
  joined TEXT NOT NULL
);
CREATE TABLE books (
  id INTEGER PRIMARY KEY,
  isbn13 TEXT NOT NULL UNIQUE CHECK (length(isbn13) = 13),
  title TEXT NOT NULL
);
CREATE TABLE authors (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);
CREATE TABLE book_authors (
  book_id INTEGER NOT NULL REFERENCES books (id),
  author_id INTEGER NOT NULL REFERENCES authors (id),
  position INTEGER NOT NULL,
  PRIMARY KEY (book_id, author_id),
  UNIQUE (book_id, position)
);
CREATE TABLE loans (
  id INTEGER PRIMARY KEY,
  patron_id INTEGER NOT NULL REFERENCES patrons (id),
  book_id INTEGER NOT NULL REFERENCES books (id),
  taken TEXT NOT NULL,
  returned TEXT CHECK (returned >= taken)
);
CREATE INDEX loans_by_book ON loans (book_id, taken);
CREATE TABLE rejects (
  source TEXT NOT NULL,
  source_id INTEGER NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (source, source_id)
);
CREATE TABLE patron_totals (
  patron_id INTEGER PRIMARY KEY REFERENCES patrons (id),
  loans INTEGER NOT NULL,
  days INTEGER NOT NULL
);
