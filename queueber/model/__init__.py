"""Plain values that the layers pass to each other. No logic. Import them from here.

Do not change them. Those that every call builds are not frozen, because building a frozen one takes
four times as long.
"""

from queueber.model.backups import *  # noqa: F403
from queueber.model.callbacks import *  # noqa: F403
from queueber.model.callers import *  # noqa: F403  every value has one address
from queueber.model.found import *  # noqa: F403
from queueber.model.id_runs import *  # noqa: F403
from queueber.model.items import *  # noqa: F403
from queueber.model.loads import *  # noqa: F403
from queueber.model.measures import *  # noqa: F403
from queueber.model.packed import *  # noqa: F403
from queueber.model.queues import *  # noqa: F403
from queueber.model.results import *  # noqa: F403
from queueber.model.routes import *  # noqa: F403
from queueber.model.schedules import *  # noqa: F403
from queueber.model.sql_answers import *  # noqa: F403
from queueber.model.subscriptions import *  # noqa: F403
from queueber.model.together import *  # noqa: F403
from queueber.model.topics import *  # noqa: F403
