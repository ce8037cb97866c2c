-- The one table of customer-360 and its five rows.
DROP TABLE IF EXISTS name;

CREATE TABLE name (
    personId int,
    "first" varchar(255),
    middle varchar(255),
    "last" varchar(255),
    UNIQUE (personId)
);

INSERT INTO name (personId, "first", middle, "last") VALUES
    (1, 'Eric', 'Donald', 'Murphy'),
    (2, 'Rosa', 'Louise McCauley', 'Parks'),
    (3, 'Mohandas', 'Karamchand', 'Gandhi'),
    (4, 'John', 'Fitzgerald', 'Kennedy'),
    (5, 'William', 'Jefferson', 'Clinton');

-- The planner should know the table before the first request, not after a while.
ANALYZE name;
