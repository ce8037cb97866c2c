"""HelloCities5 on DBOS: `hello_cities_dbos.py N DATABASE-URL` prints the seconds it took.

Workflows of five steps, started one after the other by one client, which then waits for each. The time is from before
the first start to after the last end. DBOS takes its own number of threads.
"""

import sys
import time

from dbos import DBOS

CITIES = ["Tokyo", "Seattle", "London", "Amsterdam", "Seoul"]


@DBOS.step()
def hello(city):
    return f"Hello {city}!"


@DBOS.workflow()
def hello_cities():
    return [hello(city) for city in CITIES]


def main():
    n, database = int(sys.argv[1]), sys.argv[2]
    DBOS(config={"name": "hello-cities", "system_database_url": database, "run_admin_server": False, "log_level": "ERROR"})
    DBOS.launch()
    begun = time.monotonic()
    handles = [DBOS.start_workflow(hello_cities) for _ in range(n)]
    said = [handle.get_result() for handle in handles]
    seconds = time.monotonic() - begun
    if any(len(each) != 5 for each in said):
        sys.exit("error: a workflow did not say hello to five cities")
    print(seconds)
    DBOS.destroy()


if __name__ == "__main__":
    main()
